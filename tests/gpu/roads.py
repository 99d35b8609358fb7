# The roads past the limit: roads.c tries one, as greedily as it can, and NVML is asked from here, another process,
# as often as it answers, what the driver itself holds for it meanwhile. The limit holds if that never went
# beyond it, and the case shows something only if it came near it.
#
# NVML's figure for the process has no managed memory in it, nor memory that only a descriptor keeps, and there
# is none at all where a pid namespace hides the process. Then the change of the card's own figure stands in,
# which is right on an otherwise idle card: so the roads run one after another.
import collections
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

MIB = 1 << 20
LIMIT_MIB = 2048
NEAR_MIB = 1900
SECONDS_A_ROAD = 60
SECONDS_TO_IDLE = 5
SECONDS_AFTER = 0.05
SKIP = 77

# near: whether it must come near the limit. more: MiB beyond the limit that are allowed: 2, since a small
# piece is let through where a block may have room, and taken back if it got a block of its own. why: why more is.
# figure: which of NVML's must be looked at. known: why it leads past the limit, as the README says; then it is a skip.
Road = collections.namedtuple('Road', 'name near more why figure library known',
                              defaults=(True, 2, '', 'process', True, ''))
ROADS = [
    Road('control', library=False),
    Road('linear-4k'), Road('linear-1m'), Road('linear'), Road('pitch'),
    Road('managed', figure='card'), Road('managed-pool', figure='card'),
    Road('managed-pool-here', figure='card'), Road('managed-default', figure='card'),
    Road('pageable', near=False, figure='card'),
    Road('async'), Road('pool'), Road('pools'), Road('pool-fragments'),
    Road('pool-exported', near=False, figure='card'), Road('linear-exported', near=False, figure='card',
         known='a descriptor of it for other devices keeps freed memory, and is not looked for'),
    Road('freed-later'),
    Road('vmm'), Road('vmm-mapped'), Road('vmm-released'),
    Road('vmm-exported', figure='card'), Road('vmm-exported-twin', near=False, figure='card',
         known='a duplicate of an exported descriptor keeps the memory, and nobody can see it'),
    Road('vmm-in-array', figure='card'),
    Road('array-1m'),
    Road('array-tiny', near=False),  # too tiny to come near in time
    Road('array-3d'), Road('array-mipmapped'), Road('array-layered'),
    Road('graph'), Road('graph-captured'), Road('graph-auto-free'), Road('graph-untrimmed'),
    Road('graph-shared'), Road('graph-streams'), Road('graph-update'),
    Road('reset'),
    Road('green', more=64, why=', the green context\'s own'),
    Road('contexts', near=False, known='what a context takes by itself is not counted yet'),
    Road('modules', near=False, known='global variables of modules are not counted yet'),
    Road('stack', near=False),
    Road('mix', more=34, why=', a chunk of 32 MiB for the length of a call'),
]


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

    def processes(self):
        count = ctypes.c_uint(self.ROOM)
        if self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), self.infos):
            raise Trouble('nvmlDeviceGetComputeRunningProcesses_v3 failed')
        return {info.pid: info.used for info in self.infos[:count.value] if info.used != 2**64 - 1}

    def card(self):
        info = MemoryInfo()
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(info)):
            raise Trouble('nvmlDeviceGetMemoryInfo failed')
        return info.used


class Sampler(threading.Thread):
    """Keeps the highest figures of a process, and of the card, that NVML gives until it is told to stop."""

    def __init__(self, nvml, pid):
        super().__init__(daemon=True)
        self.nvml, self.pid = nvml, pid
        self.base = {'process': nvml.processes().get(pid), 'card': nvml.card()}
        self.peak = dict(self.base)
        self.samples = 0
        self.error = None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set():
                self.peak['card'] = max(self.peak['card'], self.nvml.card())
                used = self.nvml.processes().get(self.pid)
                if self.base['process'] is not None and used is not None:
                    self.peak['process'] = max(self.peak['process'], used)
                self.samples += 1
        except Exception as error:
            self.error = error

    def stop(self):
        self.stopping.set()
        self.join()
        if self.error:
            raise self.error

    def above(self, figure):
        """The highest above the base, or None where NVML has no such figure."""
        return None if self.base[figure] is None else self.peak[figure] - self.base[figure]


def mib(number):
    if number is None:
        return '?'
    return f'{number / MIB:.0f}' if number % MIB == 0 else f'{number / MIB:.1f}'


def judge(road, said, sampler):
    """ok or FAIL, and a line. said: what the program says of itself."""
    figure = road.figure if sampler.above(road.figure) is not None else 'card'
    above = sampler.above(figure)
    allowed = (LIMIT_MIB + road.more) * MIB
    other = 'card' if figure == 'process' else 'process'
    text = (f'NVML ({figure}) at most {mib(above)} MiB above the {mib(sampler.base[figure])} of before, which have the '
            f'context in them, not counted ({other}: {mib(sampler.above(other))} above); by its own count '
            f'{mib(said["held"])} MiB, {said["refusals"]} refused; {sampler.samples} samples')
    if not road.library:
        seen = above > allowed
        return ('ok' if seen else 'FAIL'), f'without the library {"over" if seen else "not over"} the limit: {text}'
    wrong = []
    if above > allowed:
        wrong.append(f'{mib(above - LIMIT_MIB * MIB)} MiB OVER the limit of {LIMIT_MIB} '
                     f'({road.more} allowed{road.why})')
    if road.near and above < NEAR_MIB * MIB:
        wrong.append(f'never near the limit, so it shows nothing (less than {NEAR_MIB} MiB)')
    if road.near and not said['refusals']:
        wrong.append('never refused')
    if road.known and above > allowed:
        return 'skip', f'known: {road.known}: {text}'
    if road.why and not wrong:
        text += f'; {road.more} MiB over allowed{road.why}'
    return ('FAIL' if wrong else 'ok'), '; '.join(wrong + [text])


def wait_for_idle(nvml):
    """The driver takes a dead process's memory back a moment after its end."""
    end = time.monotonic() + SECONDS_TO_IDLE
    while nvml.processes():
        if time.monotonic() > end:
            raise Trouble('the GPU is in use by others')
        time.sleep(0.01)


def read_word(process, word):
    """The rest of the next line, which must begin with the word."""
    line = process.stdout.readline()
    if not line.startswith(word):
        raise Trouble(line.strip() or 'ended without a word')
    return line[len(word):]


def walk(process, nvml):
    read_word(process, 'READY')
    sampler = Sampler(nvml, process.pid)
    sampler.start()
    try:
        print(file=process.stdin, flush=True)
        said = json.loads(read_word(process, 'HELD'))
        time.sleep(SECONDS_AFTER)
    finally:
        sampler.stop()
    print(file=process.stdin, flush=True)
    return said, sampler


def run_road(road, program, library):
    """ok, FAIL or skip; the figures or the reason; more to print below. As run_case in run."""
    env = {name: value for name, value in os.environ.items()
           if name != 'LD_PRELOAD' and not name.startswith('GPU_LIMIT_')}
    if road.library:
        env.update(LD_PRELOAD=str(library), GPU_LIMIT_MB=str(LIMIT_MIB))
    if not pathlib.Path(program).exists():
        return 'skip', f'{program} could not be built here', []
    try:
        nvml = Nvml()
        wait_for_idle(nvml)
    except Trouble as trouble:
        return 'skip', str(trouble), []
    with tempfile.TemporaryFile('w+', errors='replace') as errors:
        process = subprocess.Popen([program, road.name if road.library else 'linear'], env=env, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                   start_new_session=True)
        watch = threading.Timer(SECONDS_A_ROAD, lambda: os.killpg(process.pid, signal.SIGKILL))
        watch.start()
        trouble = None
        try:
            said, sampler = walk(process, nvml)
        except (Trouble, ValueError, OSError) as error:
            trouble = error
        finally:
            process.stdin.close()
            status = process.wait()
            watch.cancel()
            process.stdout.close()
        errors.seek(0)
        more = errors.read().splitlines()[-10:]
    if status == SKIP:
        return 'skip', str(trouble), []
    if trouble or status:
        return 'FAIL', f'ended with {status}: {trouble}', more
    result, text = judge(road, said, sampler)
    return result, text, more if result == 'FAIL' else []
