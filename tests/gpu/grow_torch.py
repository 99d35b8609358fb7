# PyTorch, with whichever allocator and module loading the environment asks for.
#   usage: grow_torch.py
import os

from grow import main, skip

try:
    import torch
    from torch import nn
except ImportError as error:
    skip(str(error))


# Its linear algebra is a library of its own, loaded when first used: PyTorch ends by itself if there is no room for it.
EAGER = os.environ.get('CUDA_MODULE_LOADING') == 'EAGER'


class Trainer:
    """Convolution, matrices, gradients and Adam."""

    def __init__(self):
        torch.manual_seed(1)
        self.model = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def step(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        images = torch.randn(batch, 3, 64, 64, device='cuda')
        labels = torch.randint(10, (batch,), device='cuda')
        nn.functional.cross_entropy(self.model(images), labels).backward()
        self.optimizer.step()
        torch.cuda.synchronize()


def transform(size):
    torch.fft.fft2(torch.randn(size, size + 1, device='cuda')).abs().sum().item()


def solve(size):
    """cuBLAS and cuSOLVER, with work areas of their own."""
    matrix = torch.randn(size, size, device='cuda')
    matrix = matrix @ matrix.T + size * torch.eye(size, device='cuda')
    torch.linalg.cholesky(matrix)
    torch.linalg.solve(matrix, torch.ones(size, 1, device='cuda')).sum().item()


def half(size):
    ones = torch.ones(size, size, device='cuda', dtype=torch.float16)
    (ones @ ones).float().sum().item()


def elsewhere(size):
    """On a stream of its own, where cuBLAS has another work area."""
    with torch.cuda.stream(torch.cuda.Stream()):
        half(size)
    torch.cuda.synchronize()


def take(size):
    return torch.ones(size, dtype=torch.uint8, device='cuda')


def start():
    take(1)
    torch.cuda.synchronize()


def go(growth):
    trainers = []
    if not growth.tries('to make a model', lambda: trainers.append(Trainer())):
        raise SystemExit('no room for a model')
    trainer = trainers[0]
    growth.steps('to train', trainer.step, [16 << i for i in range(9)])
    growth.steps('to transform', transform, [512 << i for i in range(8)])
    if not EAGER:
        growth.steps('to solve', solve, [512 << i for i in range(6)])
    growth.steps('to multiply', half, [1024 << i for i in range(6)])
    growth.fill(take)
    for what, function, size in (('to train when full', trainer.step, 8), ('to transform when full', transform, 300),
                                 ('to multiply when full', elsewhere, 512)):
        growth.tries(what, function, size)
    if not EAGER:
        growth.tries('to solve when full', solve, 300)
    growth.kept.clear()
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] > 256 << 20:  # less, once all libraries are there, and nothing can be trained
        growth.recovers(trainer.step, (64, 16, 4, 1))
    growth.tries('to multiply', elsewhere, 512)
    growth.fill(take)
    torch.cuda.synchronize()
    return torch.cuda.memory_reserved()


main(start, go)
