# NVML as it is asked from outside: by one thread, without pause, for all processes that are looked at meanwhile.
import ctypes
import threading
import time

SECONDS_TO_IDLE = 5
SECONDS_TO_SETTLE = 0.05
UNKNOWN = 2**64 - 1


class Trouble(Exception):
    pass


class ProcessInfo(ctypes.Structure):
    _fields_ = [('pid', ctypes.c_uint), ('used', ctypes.c_ulonglong),
                ('gpu_instance', ctypes.c_uint), ('compute_instance', ctypes.c_uint)]


class MemoryInfo(ctypes.Structure):
    _fields_ = [('total', ctypes.c_ulonglong), ('free', ctypes.c_ulonglong), ('used', ctypes.c_ulonglong)]


class Nvml:
    """What the driver says of the first GPU."""
    ROOM = 256

    def __init__(self):
        try:
            self.library = ctypes.CDLL('libnvidia-ml.so.1')
        except OSError as error:
            raise Trouble(f'no NVML: {error}')
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise Trouble('NVML knows no GPU')
        self.infos = (ProcessInfo * self.ROOM)()

    def path(self):
        """The file that it was loaded from."""
        with open('/proc/self/maps', encoding='utf-8') as maps:
            return next(line.split(maxsplit=5)[5].strip() for line in maps if 'libnvidia-ml.so' in line)

    def processes(self):
        count = ctypes.c_uint(self.ROOM)
        if self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), self.infos):
            raise Trouble('nvmlDeviceGetComputeRunningProcesses_v3 failed')
        return {info.pid: info.used for info in self.infos[:count.value] if info.used != UNKNOWN}

    def card(self):
        info = MemoryInfo()
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(info)):
            raise Trouble('nvmlDeviceGetMemoryInfo failed')
        return info.used


class Track:
    """The highest figures since it was opened, before the process started: of the process, None if it was never
    listed, and of the card, above what was in use then."""

    def __init__(self, card):
        self.pid = None
        self.card_before = card
        self.card = 0
        self.process = None
        self.process_now = None
        self.samples = 0

    def see(self, card, processes):
        if self.pid is None:
            # What a process that has just died held goes a moment later.
            self.card_before = min(self.card_before, card)
        self.samples += 1
        self.card = max(self.card, card - self.card_before)
        self.process_now = processes.get(self.pid)
        if self.process_now is not None:
            self.process = max(self.process or 0, self.process_now)


class Watch(threading.Thread):
    """Samples for all open tracks until it is told to stop."""

    def __init__(self, nvml):
        super().__init__(daemon=True)
        self.nvml = nvml
        self.tracks = ()
        self.error = None
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set():
                tracks = self.tracks
                if not tracks:
                    time.sleep(0.001)
                    continue
                card, processes = self.nvml.card(), self.nvml.processes()
                for track in tracks:
                    track.see(card, processes)
        except Exception as error:  # a run that nobody watches must not pass
            self.error = error

    def open(self):
        track = Track(self.nvml.card())
        with self.lock:
            self.tracks += (track,)
        return track

    def close(self, track):
        with self.lock:
            self.tracks = tuple(each for each in self.tracks if each is not track)
        if self.error:
            raise Trouble(f'NVML could not be asked any more: {self.error}')

    def wait_for_idle(self):
        """The driver takes a dead process's memory back a moment after its end."""
        end = time.monotonic() + SECONDS_TO_IDLE
        since, card = time.monotonic(), self.nvml.card()
        while time.monotonic() - since < SECONDS_TO_SETTLE:
            if time.monotonic() > end:
                raise Trouble('the GPU is in use by others')
            time.sleep(0.005)
            before, card = card, self.nvml.card()
            if card != before or self.nvml.processes():
                since = time.monotonic()

    def stop(self):
        self.stopping.set()
        self.join()
