# Trains a small model and leaks 1 MiB in each step on purpose, for tests/gpu/explained. Its steps are marked, and its
# phases named by NVTX ranges, as PyTorch programs do.
#   usage: case_leak.py STEPS
import ctypes
import sys
import time

try:
    import torch
    from torch import nn
except ImportError as error:
    print(error)
    sys.exit(77)

MARK = ctypes.CDLL(None).gpulimit_mark
MARK_EVERY = 25
kept = []


def train(model, optimizer, batch):
    torch.cuda.nvtx.range_push('train')
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()


def remember(step):
    kept.append(torch.full((256, 1024), step, dtype=torch.float32, device='cuda'))  # leak


def main():
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in range(int(sys.argv[1])):
        batch = torch.randn(512, 1024, device='cuda')
        train(model, optimizer, batch)
        remember(step)
        if step % MARK_EVERY == 0:
            MARK(b'step %d' % step)
        time.sleep(0.02)
    print('HOLD', flush=True)
    sys.stdin.readline()


main()
