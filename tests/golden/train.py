# A small training program, for the scenarios: three parts of a model, a batch that is too large, and a smaller one. It
# says HOLD and waits for a line where it is to be looked at. Functions, no methods: Python before 3.11 does not tell of
# which class a method is.
#   usage: train.py [BATCH_MIB]
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'site-packages'))
from torch import memory  # noqa: E402


def hold():
    print('HOLD', flush=True)
    sys.stdin.readline()


def load_embedding():
    return memory.empty(128)


def load_blocks():
    blocks = []
    for _ in range(3):
        blocks.append(memory.empty(48))
    return blocks


def load_head():
    return memory.empty(20)


def forward(mib):
    return memory.empty(mib)


def train(mib):
    while True:
        try:
            return forward(mib)
        except memory.OutOfMemoryError as error:
            print('train.py: batch of %d MiB: %s' % (mib, error), flush=True)
            mib //= 2


def main():
    memory.init()
    load_embedding()
    load_blocks()
    load_head()
    activations = train(int(sys.argv[1]) if len(sys.argv) > 1 else 512)
    hold()
    memory.free(activations)
    hold()


main()
