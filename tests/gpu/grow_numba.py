# numba: its arrays, there and back. No kernel: its compiler does not go with every numpy.
#   usage: grow_numba.py
import sys

from grow import main, skip

try:
    import numpy
    from numba import cuda
except ImportError as error:
    skip(str(error))


def take(size):
    return cuda.device_array(size, dtype=numpy.uint8)


def work(size):
    array = cuda.to_device(numpy.full(size, 7, dtype=numpy.uint8))
    if int(array.copy_to_host()[-1]) != 7:
        sys.exit('a copy is wrong')


def start():
    take(1)


def go(growth):
    growth.steps('to work', work, [1 << 20 << 2 * i for i in range(6)])
    growth.fill(take)
    growth.tries('to work when full', work, 5 << 20)
    growth.kept.clear()
    growth.recovers(work, (64 << 20, 1 << 20))
    growth.fill(take)
    cuda.synchronize()
    return sum(array.nbytes for array in growth.kept)


main(start, go)
