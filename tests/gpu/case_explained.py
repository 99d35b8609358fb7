# A model of three layers of known size, then one request too many, then two hundred: for tests/gpu/explained, which
# looks at it where it stops and reads what it was told.
#   usage: case_explained.py
import sys

try:
    import torch
    from torch import nn
except ImportError as error:
    print(error)
    sys.exit(77)

REQUESTS = 200


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4096, 4096, bias=False, device='cuda')  # layer 64 MiB
        self.second = nn.Linear(4096, 8192, bias=False, device='cuda')  # layer 128 MiB
        self.third = nn.Linear(8192, 8192, bias=False, device='cuda')  # layer 256 MiB


def ask_too_much():
    return torch.empty(1900 << 20, dtype=torch.uint8, device='cuda')  # refused


def is_refused():
    try:
        ask_too_much()
    except torch.OutOfMemoryError:
        return True
    return False


model = Model()
print('HOLD', flush=True)
sys.stdin.readline()
if not all([is_refused() for _ in range(1 + REQUESTS)]):
    sys.exit('a request that cannot fit was granted')
