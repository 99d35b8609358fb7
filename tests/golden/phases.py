# A training program that says which phase it is in, for the scenarios: every step forgets a piece of memory.
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'site-packages'))
from torch import memory  # noqa: E402

EPOCHS = 8

# Of the library that is preloaded.
phase = ctypes.CDLL(None)


def load_weights():
    return memory.empty(64)


def compute():
    memory.free(memory.empty(32))


def log_loss():
    memory.empty(2)


def validate():
    return memory.empty(16)


def main():
    memory.init()
    load_weights()
    for epoch in range(EPOCHS):
        phase.gpulimit_tag_push(b'epoch %d' % epoch)
        for _ in range(3):
            time.sleep(0.05)
            compute()
            log_loss()
        phase.gpulimit_tag_pop()
        phase.gpulimit_mark(b'epoch %d' % epoch)
    phase.gpulimit_tag_push(b'validation')
    validate()
    print('HOLD', flush=True)
    sys.stdin.readline()


main()
