# JAX, with its default preallocation or with XLA_PYTHON_CLIENT_ALLOCATOR=platform, where every array is one
# allocation of the driver's.
#   usage: case_jax.py preallocated|platform
from held import LIMIT, MIB, check, hold, main, skip

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    skip(str(error))

# XLA may take memory by any road. Beside its allocator's it holds cuBLAS's workspace (32 MiB on Hopper) and
# small buffers of its own.
KINDS = ['linear', 'async', 'vmm']
OUTSIDE = 192 * MIB


def compute():
    ones = jnp.ones((2048, 2048), jnp.float32)
    check(float((ones @ ones)[7, 7]) == 2048, 'a product of matrices is right')
    return ones


def too_large():
    try:
        jnp.zeros((3, 16384, 16384), jnp.float32).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print(error)
        check('RESOURCE_EXHAUSTED' in str(error), 'the error is RESOURCE_EXHAUSTED')
        return
    check(False, 'an array of 3 GiB is refused')


def preallocated():
    """XLA reserves three quarters of what it believes the GPU has, and refuses out of that by itself."""
    device = jax.devices('gpu')[0]
    kept = [compute()]
    reserve = device.memory_stats().get('pool_bytes')
    check(reserve, f'XLA tells what it has reserved: {sorted(device.memory_stats())}')
    check(LIMIT // 2 < reserve <= LIMIT, f'the reserve is a part of the limit: {reserve}')
    hold('preallocated', KINDS, reserve, OUTSIDE)
    too_large()
    kept.append(compute())
    hold('computes after the refusal', KINDS, device.memory_stats()['pool_bytes'], OUTSIDE)


def platform():
    kept = [compute()]
    too_large()
    kept.append(compute())
    hold('computes after the refusal', KINDS, sum(array.nbytes for array in kept), OUTSIDE, denials=1)


main({'preallocated': preallocated, 'platform': platform})
