# NVML by ctypes, for two_gpus, where it is the true one, and for its child, where the library stands before it.
import collections
import ctypes

MIB = 1 << 20
ROOM = 256
TEXT_BYTES = 96
MEMORY_V2 = 2 << 24 | 40
FIGURE_UNKNOWN = 2**64 - 1

# As NVML's two versions of its memory info have them; reserved is None in the first.
Memory = collections.namedtuple('Memory', 'total free used reserved')
Card = collections.namedtuple('Card', 'index uuid bus name')


class Trouble(Exception):
    pass


class _Process(ctypes.Structure):
    _fields_ = [('pid', ctypes.c_uint), ('used', ctypes.c_ulonglong),
                ('gpu_instance', ctypes.c_uint), ('compute_instance', ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ('total', 'free', 'used')]


class _MemoryV2(ctypes.Structure):
    _fields_ = [('version', ctypes.c_uint)] + [(name, ctypes.c_ulonglong)
                                               for name in ('total', 'reserved', 'free', 'used')]


class _Pci(ctypes.Structure):
    _fields_ = [('bus_legacy', ctypes.c_char * 16), ('numbers', ctypes.c_uint * 5), ('bus', ctypes.c_char * 32)]


class Nvml:
    def __init__(self):
        try:
            self.library = ctypes.CDLL('libnvidia-ml.so.1')
        except OSError as error:
            raise Trouble(f'no NVML: {error}')
        self.call('nvmlInit_v2')

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result:
            raise Trouble(f'{name} answered {result}')

    def handle(self, way, what):
        """way: ByIndex_v2, ByUUID or ByPciBusId_v2."""
        found = ctypes.c_void_p()
        self.call(f'nvmlDeviceGetHandle{way}', what.encode() if isinstance(what, str) else what,
                  ctypes.byref(found))
        return found

    def cards(self):
        count = ctypes.c_uint()
        self.call('nvmlDeviceGetCount_v2', ctypes.byref(count))
        cards = []
        for index in range(count.value):
            handle = self.handle('ByIndex_v2', index)
            uuid, name, pci = (ctypes.create_string_buffer(TEXT_BYTES), ctypes.create_string_buffer(TEXT_BYTES),
                               _Pci())
            self.call('nvmlDeviceGetUUID', handle, uuid, TEXT_BYTES)
            self.call('nvmlDeviceGetName', handle, name, TEXT_BYTES)
            self.call('nvmlDeviceGetPciInfo_v3', handle, ctypes.byref(pci))
            cards.append(Card(index, uuid.value.decode(), pci.bus.decode(), name.value.decode()))
        return cards

    def memory(self, handle):
        """Both versions' answers."""
        first, second = _Memory(), _MemoryV2(version=MEMORY_V2)
        self.call('nvmlDeviceGetMemoryInfo', handle, ctypes.byref(first))
        self.call('nvmlDeviceGetMemoryInfo_v2', handle, ctypes.byref(second))
        return (Memory(first.total, first.free, first.used, None),
                Memory(second.total, second.free, second.used, second.reserved))

    def processes(self, handle):
        """What each process holds, by pid."""
        count, infos = ctypes.c_uint(ROOM), (_Process * ROOM)()
        self.call('nvmlDeviceGetComputeRunningProcesses_v3', handle, ctypes.byref(count), infos)
        held = collections.Counter()
        for info in infos[:count.value]:
            if info.used != FIGURE_UNKNOWN:
                held[info.pid] += info.used
        return held
