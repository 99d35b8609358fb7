# numba's own arrays: one cuMemAlloc each, freed late.
#   usage: case_numba.py arrays
from held import LIMIT, MIB, check, hold, main, skip

try:
    import numpy
    from numba import cuda
except ImportError as error:
    skip(str(error))


def arrays():
    total = cuda.current_context().get_memory_info().total
    check(total == LIMIT, f'get_memory_info gives a total of 2 GiB: {total}')
    kept = [cuda.device_array(256 * MIB, dtype=numpy.uint8) for _ in range(4)]
    kept.append(cuda.to_device(numpy.arange(1000, dtype=numpy.uint8)))
    check(int(kept[-1].copy_to_host()[200]) == 200, 'a copy there and back is right')
    bytes_held = sum(array.nbytes for array in kept)
    hold('arrays', ['linear'], bytes_held, slack=2 * MIB)  # the small one has a block of 2 MiB
    try:
        cuda.device_array(1500 * MIB, dtype=numpy.uint8)
    except Exception as error:  # its class has changed from release to release
        print(repr(error))
        check('OUT_OF_MEMORY' in repr(error).upper(), 'the error is out of memory')
    else:
        check(False, '1500 MiB more are refused')
    hold('refused', ['linear'], bytes_held, slack=2 * MIB, denials=1)
    kept.clear()
    kept.append(cuda.device_array(1500 * MIB, dtype=numpy.uint8))
    hold('recovered', ['linear'], kept[0].nbytes, slack=2 * MIB, denials=1)


main({'arrays': arrays})
