# What tests/gpu/escape tries: roads, each a way to device memory past the limit that tests/gpu/roads*.c walk as
# greedily as they can, and programs, which grow by frameworks until they are refused (tests/gpu/grow_*.py).
import collections

from machine import BUILD, python

PROGRAM_LATE_MIB = 200

# near: whether it must come near the limit and be refused, else it shows nothing.
# more: MiB beyond the limit that are allowed: 2, since a small piece is let through where a block may have room,
#   and taken back if it got a block of its own. why: why more is.
# late: MiB beyond the limit that code may take which comes with a launch, when nobody can refuse it. It is
#   reported, and counts against what comes after.
# figure: which of NVML's is looked at. Managed memory, and what only a descriptor or an array keeps, is in no
#   process's.
# known: why it leads past the limit, as the README says; then it is a skip.
# starts_from: the limit in MiB below which it may be unable to start, with an ordinary error.
# limits: of several processes that run at once, instead of one under each of the runner's.
Case = collections.namedtuple(
    'Case', 'name command env near more why late figure library known is_program starts_from limits',
    defaults=({}, True, 2, '', 0, 'process', True, '', False, 0, ()))


def road(name, **more):
    walked = name if more.get('library', True) else 'linear'
    return Case(name, [str(BUILD / 'roads'), walked, str(BUILD)], **more)


def program(name, command, env=None, late=PROGRAM_LATE_MIB, **more):
    return Case(name, command, env or {}, late=late, is_program=True, **more)


MANAGED = {'figure': 'card', 'more': 12, 'why': ', what the driver takes for managed memory itself'}

ROADS = [
    road('control', library=False),
    road('linear-4k'), road('linear-1m'), road('linear'), road('pitch'),
    road('managed', **MANAGED), road('managed-pool', **MANAGED), road('managed-pool-here', **MANAGED),
    road('managed-default', **MANAGED),
    road('pageable', near=False, figure='card'),
    road('async'), road('pool'), road('pools'), road('pool-fragments'),
    road('pool-exported', near=False, figure='card'),
    road('linear-exported', near=False, figure='card',
         known='a descriptor of it for other devices keeps freed memory, and is not looked for'),
    road('freed-later'),
    road('vmm'), road('vmm-mapped'), road('vmm-released'),
    road('vmm-exported', figure='card'),
    road('vmm-exported-twin', near=False, figure='card',
         known='a duplicate of an exported descriptor keeps the memory, and nobody can see it'),
    road('vmm-in-array', figure='card'),
    road('array-1m'),
    road('array-tiny', near=False),  # too tiny to come near in time
    road('array-3d'), road('array-mipmapped'), road('array-layered'),
    road('graph'), road('graph-captured'), road('graph-auto-free'), road('graph-untrimmed'),
    road('graph-shared'), road('graph-streams'), road('graph-update'),
    road('reset'), road('green'), road('contexts'), road('context-churn'), road('retain'),
    road('modules'), road('stack'), road('streams'),
    road('heap', late=32),  # beside the heap itself, a kernel that uses it brings some code
    road('late-local', late=2400), road('late-global', late=PROGRAM_LATE_MIB),
    road('late-fatbin', late=PROGRAM_LATE_MIB),
    road('mix'),
]

EAGER = {'CUDA_MODULE_LOADING': 'EAGER'}
EXPANDABLE = {'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True'}
ASYNC = {'PYTORCH_CUDA_ALLOC_CONF': 'backend:cudaMallocAsync'}
PLATFORM = {'XLA_PYTHON_CLIENT_ALLOCATOR': 'platform'}
TORCH = python('grow_torch.py')

PROGRAMS = [
    program('torch', TORCH),
    # The first context brings all libraries that were loaded before it, 1250 MiB: how much that is is known when it
    # is there, for the length of a call.
    program('torch-eager', TORCH, EAGER, starts_from=2048, late=300),
    program('torch-eager-large', TORCH, EAGER, limits=(3072,)),
    program('torch-async', TORCH, ASYNC),
    program('torch-expandable', TORCH, EXPANDABLE),
    # It takes a part of the limit at its start and refuses out of that by itself.
    program('jax', python('grow_jax.py'), near=False),
    program('jax-platform', python('grow_jax.py'), PLATFORM),
    program('cupy', python('grow_cupy.py')),
    program('numba', python('grow_numba.py')),
    program('two', TORCH, limits=(2048, 2048)),
    program('two-unequal', TORCH, limits=(2048, 1024)),
]
