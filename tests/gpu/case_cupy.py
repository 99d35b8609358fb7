# CuPy, with its own pool over cudaMalloc and with the driver's pool.
#   usage: case_cupy.py pool|async_pool
from held import LIMIT, MIB, check, hold, main, skip

try:
    import cupy
except ImportError as error:
    skip(str(error))


def fill(pool, kind, slack):
    """Takes 1000 MiB and some small arrays, is refused 1500 MiB, gets them when the rest is freed."""
    total = cupy.cuda.runtime.memGetInfo()[1]
    check(total == LIMIT, f'memGetInfo gives a total of 2 GiB: {total}')
    arrays = [cupy.empty(100 * MIB, dtype=cupy.uint8) for _ in range(10)]
    arrays += [cupy.empty(size, dtype=cupy.uint8) for size in (1, 1000, 100000, 3 * MIB)]
    arrays[0][...] = 7
    check(int(arrays[0][12345]) == 7, 'a kernel wrote what it should')
    hold('arrays', [kind], pool.total_bytes(), slack)
    try:
        cupy.empty(1500 * MIB, dtype=cupy.uint8)
        check(False, '1500 MiB more are refused')
    except cupy.cuda.memory.OutOfMemoryError as error:
        print(error)
    hold('refused', [kind], pool.total_bytes(), slack, denials=1)
    del arrays
    large = cupy.empty(1500 * MIB, dtype=cupy.uint8)
    large[...] = 9
    check(int(large[-1]) == 9, 'a kernel wrote what it should')
    hold('recovered', [kind], pool.total_bytes(), slack, denials=1)


def pool():
    """The pool counts in units of 512 bytes; the driver backs each of its 15 chunks by blocks of 2 MiB."""
    fill(cupy.get_default_memory_pool(), 'linear', slack=15 * 2 * MIB)


def async_pool():
    """The driver gives idle chunks of 32 MiB back at a synchronisation, of which nobody is told."""
    driver_pool = cupy.cuda.MemoryAsyncPool()
    cupy.cuda.set_allocator(driver_pool.malloc)
    fill(driver_pool, 'async', slack=32 * MIB)


main({'pool': pool, 'async_pool': async_pool})
