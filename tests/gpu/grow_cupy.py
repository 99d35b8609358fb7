# CuPy with its default pool: plans of cuFFT, cuBLAS and cuSOLVER with work areas.
#   usage: grow_cupy.py
from grow import main, skip

try:
    import cupy
    import cupyx.scipy.fft
except ImportError as error:
    skip(str(error))

pool = cupy.get_default_memory_pool()
plans = []


def take(size):
    return cupy.zeros(size, dtype=cupy.uint8)


def multiply(size):
    ones = cupy.ones((size, size), dtype=cupy.float32)
    float((ones @ ones)[0, 0])


def transform(size):
    """A plan is kept, and with it its work area."""
    given = cupy.zeros(size, dtype=cupy.complex64)
    plan = cupyx.scipy.fft.get_fft_plan(given)
    plans.append(plan)
    with plan:
        cupyx.scipy.fft.fft(given)
    cupy.cuda.runtime.deviceSynchronize()


def factor(size):
    matrix = cupy.eye(size, dtype=cupy.float32) * 2
    float(cupy.linalg.cholesky(matrix)[0, 0])
    float(cupy.linalg.qr(matrix)[1][0, 0])


def start():
    take(1)
    cupy.cuda.runtime.deviceSynchronize()


def go(growth):
    growth.steps('to multiply', multiply, [1024 << i for i in range(5)])
    growth.steps('to transform', transform, [(1 << 20 << i) + 1 for i in range(9)])
    plans.clear()
    pool.free_all_blocks()
    growth.steps('to factor', factor, [512 << i for i in range(6)])
    growth.fill(take)
    for what, function, size in (('to multiply when full', multiply, 700), ('to transform when full', transform, 70001),
                                 ('to factor when full', factor, 700)):
        growth.tries(what, function, size)
    growth.kept.clear()
    plans.clear()
    pool.free_all_blocks()
    growth.recovers(multiply, (2048, 512))
    growth.fill(take)
    cupy.cuda.runtime.deviceSynchronize()
    return pool.total_bytes()


main(start, go)
