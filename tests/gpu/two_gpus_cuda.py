# The driver by ctypes, for two_gpus_child.py, and how much memory was taken of each GPU by it. GPUs are given by
# their ordinals, as CUDA numbers what it shows to this process.
import ctypes
import sys

OUT_OF_MEMORY = 2
DEVICE, PINNED, READ_WRITE = 1, 1, 3
POOL_RESERVED = 5
MANAGED_GLOBAL = 1


class Location(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int), ('id', ctypes.c_int)]


class VmmProp(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int), ('handle_types', ctypes.c_int), ('location', Location),
                ('win32', ctypes.c_void_p), ('flags', ctypes.c_ubyte * 8)]


class PoolProps(ctypes.Structure):
    _fields_ = [('type', ctypes.c_int), ('handle_types', ctypes.c_int), ('location', Location),
                ('win32', ctypes.c_void_p), ('most', ctypes.c_size_t), ('reserved', ctypes.c_ubyte * 56)]


class Access(ctypes.Structure):
    _fields_ = [('location', Location), ('flags', ctypes.c_int)]


def expect(truth, what):
    if not truth:
        sys.exit(f'not so: {what}')


class Cuda:
    """The driver, and what was taken of it."""

    def __init__(self):
        self.library = ctypes.CDLL('libcuda.so.1')
        self.must('cuInit', 0)
        count = ctypes.c_int()
        self.must('cuDeviceGetCount', ctypes.byref(count))
        self.ordinals = range(count.value)
        self.uuids = [self.uuid(ordinal) for ordinal in self.ordinals]
        self.contexts = {}
        self.committed = dict.fromkeys(self.ordinals, 0)

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def must(self, name, *arguments):
        result = self.call(name, *arguments)
        expect(result == 0, f'{name} succeeds: it answered {result}')

    def uuid(self, ordinal):
        raw = (ctypes.c_ubyte * 16)()
        self.must('cuDeviceGetUuid_v2', raw, ordinal)
        digits = bytes(raw).hex()
        return 'GPU-' + '-'.join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))

    def bus(self, ordinal):
        text = ctypes.create_string_buffer(32)
        self.must('cuDeviceGetPCIBusId', text, 32, ordinal)
        return text.value.decode()

    def total(self, ordinal):
        bytes_ = ctypes.c_size_t()
        self.must('cuDeviceTotalMem_v2', ctypes.byref(bytes_), ordinal)
        return bytes_.value

    def try_retain(self, ordinal):
        context = ctypes.c_void_p()
        result = self.call('cuDevicePrimaryCtxRetain', ctypes.byref(context), ordinal)
        if result == 0:
            self.contexts[ordinal] = context
        return result

    def retain(self, ordinal):
        expect(self.try_retain(ordinal) == 0, f'a context on GPU {ordinal} fits')
        self.use(ordinal)

    def use(self, ordinal):
        self.must('cuCtxSetCurrent', self.contexts[ordinal])

    def release(self, ordinal):
        del self.contexts[ordinal]
        self.must('cuCtxSetCurrent', None)
        self.must('cuDevicePrimaryCtxRelease_v2', ordinal)

    def left(self, ordinal):
        """total, free of cuMemGetInfo. Leaves that GPU current."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.use(ordinal)
        self.must('cuMemGetInfo_v2', ctypes.byref(free), ctypes.byref(total))
        return total.value, free.value

    def linear(self, ordinal, size):
        """The address, or None where the limit refuses. Leaves that GPU current."""
        address = ctypes.c_uint64()
        self.use(ordinal)
        result = self.call('cuMemAlloc_v2', ctypes.byref(address), ctypes.c_size_t(size))
        return self.taken(result, ordinal, size, address)

    def managed(self, ordinal, size):
        address = ctypes.c_uint64()
        self.use(ordinal)
        result = self.call('cuMemAllocManaged', ctypes.byref(address), ctypes.c_size_t(size), MANAGED_GLOBAL)
        return self.taken(result, ordinal, size, address)

    def free(self, ordinal, address, size):
        self.must('cuMemFree_v2', ctypes.c_uint64(address))
        self.committed[ordinal] -= size

    def vmm(self, ordinal, size):
        """Of that GPU, whatever is current."""
        handle, prop = ctypes.c_uint64(), VmmProp(type=PINNED, location=Location(DEVICE, ordinal))
        result = self.call('cuMemCreate', ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(prop),
                           ctypes.c_uint64(0))
        return self.taken(result, ordinal, size, handle)

    def taken(self, result, ordinal, size, handle):
        expect(result in (0, OUT_OF_MEMORY), f'memory or the lack of it, not {result}')
        if result:
            return None
        self.committed[ordinal] += size
        return handle.value


class Pool:
    """A pool of a GPU's memory, used from whatever is current."""

    def __init__(self, cuda, ordinal):
        self.cuda, self.ordinal, self.pool, self.reserved = cuda, ordinal, ctypes.c_void_p(), 0
        props = PoolProps(type=PINNED, location=Location(DEVICE, ordinal))
        cuda.must('cuMemPoolCreate', ctypes.byref(self.pool), ctypes.byref(props))

    def read(self):
        reserved = ctypes.c_uint64()
        self.cuda.must('cuMemPoolGetAttribute', self.pool, POOL_RESERVED, ctypes.byref(reserved))
        self.cuda.committed[self.ordinal] += reserved.value - self.reserved
        self.reserved = reserved.value

    def take(self, size):
        address = ctypes.c_uint64()
        result = self.cuda.call('cuMemAllocFromPoolAsync', ctypes.byref(address), ctypes.c_size_t(size), self.pool,
                                None)
        self.read()
        expect(result in (0, OUT_OF_MEMORY), f'pool memory or the lack of it, not {result}')
        return None if result else address.value

    def share(self, ordinal):
        access = Access(Location(DEVICE, ordinal), READ_WRITE)
        return self.cuda.call('cuMemPoolSetAccess', self.pool, ctypes.byref(access), ctypes.c_size_t(1)) == 0

    def destroy(self, address):
        self.cuda.must('cuMemFree_v2', ctypes.c_uint64(address))
        self.cuda.must('cuMemPoolDestroy', self.pool)
        self.cuda.committed[self.ordinal] -= self.reserved
