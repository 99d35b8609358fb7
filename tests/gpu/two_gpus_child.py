# The program that two_gpus starts under the library: it takes memory of each kind on both GPUs, and stops after
# each step to say how much there is by CUDA and by NVML, and what it holds. Enter lets it go on; "again" makes it
# wait until the library looks for overhead anew, and say it again.
#
#   usage: two_gpus_child.py ROLE CARDS    CARDS: [[index, uuid, bus], ...] in JSON, as the true NVML has them
# NVML_FIRST in the environment: NVML is initialised, and asked, before cuInit.
import ctypes
import json
import os
import sys
import time

from two_gpus_cuda import DEVICE, OUT_OF_MEMORY, READ_WRITE, Access, Cuda, Location, Pool, expect
from two_gpus_nvml import MIB, Nvml

SECONDS_TO_LATE_LOOK = 0.12
VMM_BYTES, POOL_BYTES, LINEAR_BYTES, MANAGED_BYTES = 32 * MIB, 20 * MIB, 40 * MIB, 32 * MIB
BLOCK = 2 * MIB
SKIP = 77


class Teller:
    """Says how much there is, to two_gpus."""

    def __init__(self, cards):
        self.cards, self.nvml = cards, None

    def by_nvml(self, index, uuid, bus):
        return {way: self.nvml.memory(self.nvml.handle(way, what))
                for way, what in (('ByIndex_v2', index), ('ByUUID', uuid), ('ByPciBusId_v2', bus))}

    def look(self, cuda, is_late):
        visible, hidden = [], []
        for index, uuid, bus in self.cards:
            if not cuda or uuid not in cuda.uuids:
                hidden.append({'uuid': uuid, 'nvml': self.by_nvml(index, uuid, bus)})
                continue
            ordinal = cuda.uuids.index(uuid)
            if is_late:
                time.sleep(SECONDS_TO_LATE_LOOK)
            info = cuda.left(ordinal) if ordinal in cuda.contexts else None
            visible.append({'uuid': uuid, 'ordinal': ordinal, 'info': info, 'total': cuda.total(ordinal),
                            'committed': cuda.committed[ordinal],
                            'nvml': self.by_nvml(index, uuid, cuda.bus(ordinal))})
        return {'visible': visible, 'hidden': hidden}

    def hold(self, step, cuda, **more):
        is_late = False
        while True:
            said = self.look(cuda, is_late)
            now = {name: value() if callable(value) else value for name, value in more.items()}
            print(json.dumps({'step': step, **now, **said}), flush=True)
            is_late = sys.stdin.readline().strip() == 'again'
            if not is_late:
                return


def begin(teller):
    """cuInit, and NVML before it or after, as NVML_FIRST says."""
    if os.environ.get('NVML_FIRST'):
        teller.nvml = Nvml()
        teller.hold('before cuInit', None)
    cuda = Cuda()
    teller.nvml = teller.nvml or Nvml()
    teller.hold('cuInit', cuda)
    return cuda


def enable_peers(cuda):
    if len(cuda.contexts) < 2 or not hasattr(cuda.library, 'cuCtxEnablePeerAccess'):
        return 'no peer access here'
    for one, other in ((0, 1), (1, 0)):
        can = ctypes.c_int()
        cuda.must('cuDeviceCanAccessPeer', ctypes.byref(can), one, other)
        if not can.value:
            return 'no peer access here'
        cuda.use(one)
        cuda.must('cuCtxEnablePeerAccess', cuda.contexts[other], 0)
    return 'peers'


def map_everywhere(cuda, handle, size):
    """For all GPUs that have a context. The address."""
    address = ctypes.c_uint64()
    cuda.must('cuMemAddressReserve', ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0),
              ctypes.c_uint64(0), ctypes.c_uint64(0))
    cuda.must('cuMemMap', address, ctypes.c_size_t(size), ctypes.c_size_t(0), ctypes.c_uint64(handle),
              ctypes.c_uint64(0))
    everybody = (Access * len(cuda.contexts))(*[Access(Location(DEVICE, each), READ_WRITE)
                                                for each in cuda.contexts])
    if cuda.call('cuMemSetAccess', address, ctypes.c_size_t(size), everybody,
                 ctypes.c_size_t(len(everybody))):
        cuda.must('cuMemSetAccess', address, ctypes.c_size_t(size), everybody, ctypes.c_size_t(1))
    return address


def fill(cuda, teller, ordinal, pool, managed):
    """The rest of a GPU, up to its limit: there nothing more is to be had, elsewhere it is."""
    others = [each for each in cuda.contexts if each != ordinal]
    rest = cuda.left(ordinal)[1] // BLOCK * BLOCK
    expect(rest, f'there is memory left on GPU {ordinal}')
    address = cuda.linear(ordinal, rest)
    expect(address, f'all that is left on GPU {ordinal} can be had')
    for current in [ordinal] + others:
        cuda.use(current)
        expect(cuda.vmm(ordinal, 2 * BLOCK) is None, f'GPU {ordinal} refuses cuMemCreate at its limit')
        if pool.ordinal == ordinal:
            expect(pool.take(4 * POOL_BYTES) is None, f'GPU {ordinal} refuses its pool more at its limit')
    expect(cuda.linear(ordinal, 2 * BLOCK) is None, f'GPU {ordinal} refuses cuMemAlloc at its limit')
    for other in others:
        extra, created = cuda.linear(other, 2 * BLOCK), cuda.vmm(other, 2 * BLOCK)
        expect(extra and created, f'GPU {other} has memory while GPU {ordinal} is full')
        cuda.free(other, extra, 2 * BLOCK)
        cuda.must('cuMemRelease', ctypes.c_uint64(created))
        cuda.committed[other] -= 2 * BLOCK
    teller.hold(f'GPU {ordinal} full', cuda, full=cuda.uuids[ordinal], managed=managed)
    cuda.use(ordinal)
    cuda.free(ordinal, address, rest)


def play_all(teller):
    cuda = begin(teller)
    here, there = 0, len(cuda.ordinals[:2]) - 1
    if there:
        cuda.retain(there)  # a context that comes and goes
        teller.hold(f'context on GPU {there}', cuda)
        cuda.release(there)
    cuda.retain(here)
    teller.hold(f'context on GPU {here}', cuda)

    handle, pool = cuda.vmm(there, VMM_BYTES), Pool(cuda, there)
    address = pool.take(POOL_BYTES)
    expect(handle and address, 'memory of a GPU that is not current fits')
    teller.hold(f'cuMemCreate and pool on GPU {there}', cuda)

    if there:
        cuda.retain(there)
    linear = {each: cuda.linear(each, LINEAR_BYTES) for each in cuda.contexts}
    managed = cuda.managed(here, MANAGED_BYTES)
    expect(all(linear.values()) and managed, 'memory on each GPU fits')
    teller.hold('memory on each', cuda, managed={cuda.uuids[here]: MANAGED_BYTES})

    peers = enable_peers(cuda)
    cuda.use(here)
    mapped = map_everywhere(cuda, handle, VMM_BYTES)
    if there:
        pool.share(here)
    managed_by = {cuda.uuids[here]: MANAGED_BYTES}
    teller.hold(peers, cuda, managed=managed_by)

    for each in cuda.ordinals[:2]:
        fill(cuda, teller, each, pool, managed_by)

    cuda.use(here)
    cuda.must('cuMemUnmap', mapped, ctypes.c_size_t(VMM_BYTES))
    cuda.must('cuMemRelease', ctypes.c_uint64(handle))
    cuda.committed[there] -= VMM_BYTES
    pool.destroy(address)
    cuda.free(here, managed, MANAGED_BYTES)
    for each in linear:
        cuda.use(each)
        cuda.free(each, linear[each], LINEAR_BYTES)
    teller.hold('all freed', cuda)
    for each in list(cuda.contexts):
        cuda.release(each)
    teller.hold('no context', cuda)


def play_left_out(teller):
    """GPU 0 is not in the list of limits: it has nothing to give, whatever is current."""
    cuda = begin(teller)
    expect(cuda.try_retain(0) == OUT_OF_MEMORY, 'no context where there is no memory')
    cuda.retain(1)
    expect(cuda.vmm(0, BLOCK) is None and cuda.vmm(1, BLOCK), 'cuMemCreate on GPU 1 alone')
    expect(Pool(cuda, 0).take(BLOCK) is None, 'no pool memory on GPU 0')
    teller.hold('GPU 0 left out', cuda, full=cuda.uuids[0])


def play_torch(teller):
    """A tensor on each. cuda.committed is not what PyTorch took: its own account stands in."""
    try:
        import torch
    except ImportError:
        sys.exit(SKIP)
    cuda = begin(teller)
    tensors = [torch.zeros(16 * MIB, dtype=torch.uint8, device=f'cuda:{each}') for each in range(2)]
    for each in range(2):
        torch.cuda.synchronize(each)
        cuda.committed[each] = torch.cuda.memory_reserved(each)
        cuda.retain(each)
    time.sleep(SECONDS_TO_LATE_LOOK)
    teller.hold('torch', cuda,
                torch=lambda: {cuda.uuids[each]: torch.cuda.mem_get_info(each)[::-1] for each in range(2)})
    try:
        torch.empty(4096 * MIB, dtype=torch.uint8, device='cuda:1')
        sys.exit('not so: 4 GiB are refused on cuda:1')
    except torch.cuda.OutOfMemoryError:
        pass
    more = torch.ones(16 * MIB, dtype=torch.uint8, device='cuda:0')
    expect(int(more[-1]) == 1 and not tensors[1].any(), 'tensors on both are right')


ROLES = {'all': play_all, 'left-out': play_left_out, 'torch': play_torch}

if __name__ == '__main__':
    ROLES[sys.argv[1]](Teller(json.loads(sys.argv[2])))
