# JAX, with whichever allocator XLA_PYTHON_CLIENT_ALLOCATOR names.
#   usage: grow_jax.py
import os

from grow import main, skip

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    skip(str(error))


def take(size):
    return jnp.zeros(size, jnp.uint8).block_until_ready()


def multiply(size):
    ones = jnp.ones((size, size), jnp.float32)
    (ones @ ones).block_until_ready()


def transform(size):
    jnp.abs(jnp.fft.fft2(jnp.ones((size, size), jnp.float32))).block_until_ready()


@jax.jit
def gradient(weights, given):
    return jax.grad(lambda w: jnp.mean(jnp.tanh(given @ w) ** 2))(weights)


def train(batch):
    weights = jnp.ones((1024, 1024), jnp.float32)
    for _ in range(3):
        weights = weights - 0.1 * gradient(weights, jnp.ones((batch, 1024), jnp.float32))
    weights.block_until_ready()


def start():
    if not any(device.platform in ('gpu', 'cuda') for device in jax.devices()):
        skip('JAX finds no GPU')
    take(1)


def go(growth):
    """Its own allocator waits ten seconds before each refusal."""
    patient = os.environ.get('XLA_PYTHON_CLIENT_ALLOCATOR') != 'platform'
    most = 1 if patient else 3
    growth.steps('to train', train, [1 << 10 << 3 * i for i in range(most)])
    growth.steps('to multiply', multiply, [1024 << 2 * i for i in range(most)])
    growth.steps('to transform', transform, [1024 << 2 * i for i in range(most)])
    growth.fill(take, smallest=2 << 20, enough=1 if patient else 8)
    if not patient:
        for what, function, size in (('to train when full', train, 256), ('to multiply when full', multiply, 300),
                                     ('to transform when full', transform, 300)):
            growth.tries(what, function, size)
    growth.kept.clear()
    growth.recovers(train, (1024, 256))
    growth.fill(take, smallest=2 << 20, enough=1 if patient else 8)
    return sum(array.nbytes for array in growth.kept)


main(start, go)
