# PyTorch, with whichever allocator PYTORCH_CUDA_ALLOC_CONF names.
#   usage: case_torch.py train|out_of_memory|graph|figures
import math
import os
import re

from held import LIMIT, MIB, check, hold, main, skip

try:
    import torch
    from torch import nn
except ImportError as error:
    skip(str(error))

CONF = os.environ.get('PYTORCH_CUDA_ALLOC_CONF', '')
if 'cudaMallocAsync' in CONF:
    # memory_reserved() is the pool's reserve, as is the ledger's figure.
    KIND, LIBRARIES = 'async', 0
elif 'expandable_segments:True' in CONF:
    # memory_reserved() is what is mapped, in pieces of the driver's granularity.
    KIND, LIBRARIES = 'vmm', 0
else:
    # Segments are multiples of 2 MiB. A cuBLAS handle takes 64 MiB and a few small pieces, in a block of their own,
    # with cudaMalloc itself, of which PyTorch's allocator knows nothing; the main thread has one and autograd's too.
    KIND, LIBRARIES = 'linear', 2 * 66 * MIB


class Trainer:
    def __init__(self):
        torch.manual_seed(1)
        self.model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        images = torch.randn(batch, 3, 64, 64, device='cuda')
        labels = torch.randint(10, (batch,), device='cuda')
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def steps(self, count, batch):
        losses = [self.step(batch) for _ in range(count)]
        check(all(math.isfinite(loss) for loss in losses), f'the losses are finite: {losses}')


def train():
    Trainer().steps(20, batch=64)
    hold('trained', [KIND], torch.cuda.memory_reserved(), LIBRARIES)


def out_of_memory():
    """2 MiB of activations an image: 4096 of them cannot fit, some smaller batch does."""
    trainer = Trainer()
    trainer.steps(2, batch=16)
    batch, refused, text = 4096, 0, ''
    while True:
        try:
            trainer.steps(6, batch)  # what fits once need not fit into the holes that it leaves
            break
        except torch.OutOfMemoryError as error:
            text = str(error)
        refused += 1
        batch //= 2
        check(batch >= 16, 'a smaller batch fits in the end')
    check(refused, f'a batch of {batch} is too large')
    print(text)
    check(re.search(r'(total capacity of|Device limit\s*:) 2\.00 GiB', text), 'the error says 2.00 GiB')
    hold(f'refused {refused} times, trains on with batches of {batch}', [KIND], torch.cuda.memory_reserved(),
         LIBRARIES, denials=1)


def graph():
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
    given = torch.randn(256, 1024, device='cuda')
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad():
        with torch.cuda.stream(side):
            for _ in range(3):
                model(given)
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            result = model(given)
        for _ in range(10):
            given.copy_(torch.randn(256, 1024, device='cuda'))
            captured.replay()
            torch.testing.assert_close(result, model(given), rtol=1e-3, atol=1e-3)
    torch.cuda.synchronize()
    hold('replayed', [KIND], torch.cuda.memory_reserved(), LIBRARIES)


def figures():
    """Nothing but tensors, so nothing but what PyTorch's allocator knows of."""
    total = torch.cuda.mem_get_info()[1]
    check(total == LIMIT, f'mem_get_info gives a total of 2 GiB: {total}')
    total = torch.cuda.get_device_properties(0).total_memory
    check(total == LIMIT, f'get_device_properties gives 2 GiB: {total}')
    tensors = [torch.zeros(size, dtype=torch.uint8, device='cuda')
               for size in (1, 1000, 1 << 20, 3 << 20, 10 << 20, (11 << 20) + 1, 300 << 20)]
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    check(free <= LIMIT - torch.cuda.memory_reserved(), f'mem_get_info counts what is held: {free} free')
    hold(f'{len(tensors)} tensors', [KIND], torch.cuda.memory_reserved())


main({'train': train, 'out_of_memory': out_of_memory, 'graph': graph, 'figures': figures})
