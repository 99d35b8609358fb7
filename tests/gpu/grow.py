# What the programs of tests/gpu/escape share: they grow until they are refused, step by step, count that, and go
# on; at the end they say what they hold, and rest until a line comes.
import json
import sys

MIB = 1 << 20
ENOUGH_REFUSALS = 8
# How frameworks and the libraries below them say that there is no memory.
WORDS = ('out of memory', 'OUT_OF_MEMORY', 'OutOfMemory', 'ALLOC_FAILED', 'RESOURCE_EXHAUSTED', 'NOT_INITIALIZED',
         'INTERNAL', 'unable to find an engine', 'cudaErrorMemoryAllocation', 'Failed to create')


def skip(why):
    print(why)
    sys.exit(77)


def is_refusal(error):
    text = f'{type(error).__name__}: {error}'
    return isinstance(error, MemoryError) or any(word in text for word in WORDS)


class Growth:
    def __init__(self):
        self.refusals = 0
        self.kept = []

    def tries(self, what, function, *arguments):
        """Whether it went well. Anything but a lack of memory ends the program."""
        try:
            function(*arguments)
            return True
        except Exception as error:
            if not is_refusal(error):
                raise
            text = f'{type(error).__name__}: {error}'
        self.refusals += 1
        print(f'refused {what} {arguments}: {text.splitlines()[0][:200]}', file=sys.stderr)
        return False

    def steps(self, what, function, sizes):
        """One size after another, until one is refused."""
        for size in sizes:
            if not self.tries(what, function, size):
                return

    def fill(self, take, largest=64 * MIB, smallest=MIB, enough=ENOUGH_REFUSALS):
        """Keeps pieces, ever smaller ones, until it was refused often enough."""
        size, in_a_row = largest, 0
        while in_a_row < enough:
            if self.tries('to fill', lambda: self.kept.append(take(size))):
                in_a_row = 0
            else:
                in_a_row += 1
                size = max(size // 2, smallest)

    def recovers(self, function, sizes):
        """Does the largest that goes, once there is room again."""
        if not any(self.tries('after making room', function, size) for size in sizes):
            sys.exit('does not recover')


def rest(**said):
    print('HELD ' + json.dumps(said), flush=True)
    sys.stdin.readline()


def main(start, go):
    """start() makes the first use of the GPU, go(growth) the rest, and returns the bytes that it holds."""
    growth = Growth()
    try:
        start()
    except Exception as error:
        if not is_refusal(error):
            raise
        rest(started=False, refusals=1, error=f'{type(error).__name__}: {error}'.splitlines()[0][:200])
        return
    rest(held=go(growth), refusals=growth.refusals)
