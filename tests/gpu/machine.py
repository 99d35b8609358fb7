# What tests/gpu/run and tests/gpu/escape share: they build for themselves, say on what machine they run, and look
# at a process from outside through gpulimit-stat.
import datetime
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / 'build-gpu'
MIB = 1 << 20
SKIP = 77  # how a program ends that cannot run here
LINES_OF_A_FAILURE = 25
CC = shutil.which('cc') or 'gcc'


class Failed(Exception):
    pass


def mib(number):
    if number is None:
        return '?'
    return f'{number / MIB:.0f}' if number % MIB == 0 else f'{number / MIB:.1f}'


def environment(library=None, limit_mib=None, **more):
    """For a case. What is set here must not reach it; what it finds of the CUDA driver must."""
    env = {name: value for name, value in os.environ.items()
           if name != 'LD_PRELOAD' and not name.startswith('GPU_LIMIT_')}
    env.update(more)
    if library:
        env.update(LD_PRELOAD=str(library), GPU_LIMIT_MB=str(limit_mib))
        env.setdefault('GPU_LIMIT_REPORT_DIR', 'none')  # not the user's own folder
    return env


def python(script, *arguments):
    return [sys.executable, '-B', str(HERE / script), *arguments]


class Looker:
    """Asks from outside what a process holds."""

    def __init__(self, stat):
        self.stat = stat

    def ask(self, *arguments, **env):
        done = subprocess.run([self.stat, '--json', *arguments], capture_output=True, text=True, timeout=30,
                              env={**os.environ, **env})
        if done.returncode:
            raise Failed(f'gpulimit-stat ended with {done.returncode}: {done.stderr.strip()}')
        answer = json.loads(done.stdout)
        if answer['schema'] != 'gpulimit.stat/1':
            raise Failed(f'gpulimit-stat has another schema: {done.stdout.strip()}')
        return answer['processes']

    def ledger(self, pid):
        """The first device of the process, as gpulimit-stat shows it."""
        processes = self.ask('-p', str(pid))
        found = [process for process in processes if process['pid'] == pid]
        if len(found) != 1 or not found[0]['devices']:
            raise Failed(f'gpulimit-stat does not show process {pid}: {processes}')
        if found[0]['state'] != 'live':
            raise Failed(f'gpulimit-stat calls the process {found[0]["state"]}')
        return found[0]['devices'][0]

    def ledger_in(self, folder):
        """The same of the one process whose ledger is in a folder of its own, whatever its number is there."""
        found = [process for process in self.ask(GPU_LIMIT_DIR=str(folder)) if process['devices']]
        if len(found) != 1:
            raise Failed(f'gpulimit-stat shows {len(found)} processes with devices instead of one')
        return found[0]['devices'][0]

    def nvidia_smi(self, pid):
        """The driver's own figure for the process in MiB, or None. For information."""
        try:
            done = subprocess.run(['nvidia-smi', '--query-compute-apps=pid,used_memory',
                                   '--format=csv,noheader,nounits'], capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        rows = dict(line.split(', ') for line in done.stdout.splitlines() if line.count(', ') == 1)
        return rows.get(str(pid))


def must(command, **options):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode:
        print('\n'.join(done.stdout.splitlines()[-40:]))
        sys.exit(f'{os.path.basename(sys.argv[0])}: failed: {" ".join(map(str, command))}')
    return done.stdout


def has_tool_libraries():
    return shutil.which('pkg-config') and not subprocess.run(['pkg-config', '--exists', 'jansson', 'smartcols']
                                                             ).returncode


def cuda_include():
    """The folder of cuda.h beside nvcc or in Python's own CUDA, where tools/cuda-headers finds none."""
    places = [pathlib.Path(folder) / 'nvidia/cu13/include' for folder in sys.path]
    nvcc = shutil.which('nvcc')
    if nvcc:
        places.insert(0, pathlib.Path(nvcc).resolve().parents[1] / 'include')
    done = subprocess.run([ROOT / 'tools/cuda-headers', '', BUILD, 'local'], capture_output=True, text=True)
    if not done.returncode:
        return done.stdout.strip()
    for place in places:
        if (place / 'cudaTypedefs.h').is_file():
            return str(place)
    said = must([ROOT / 'tools/cuda-headers', '', BUILD])
    return said.splitlines()[-1]  # before it comes what is being fetched


def build(library):
    """Builds what is missing of the project. The library, the gpulimit-stat to ask, the folder of cuda.h."""
    BUILD.mkdir(exist_ok=True)
    # Where Python's packages brought meson and ninja, they lie beside it.
    os.environ['PATH'] += os.pathsep + os.path.dirname(sys.executable) + ':/usr/local/cuda/bin'
    cuda = cuda_include()
    stat = os.environ.get('GPULIMIT_STAT')
    if not library:
        tools = 'false' if stat or not has_tool_libraries() else 'true'
        options = [f'-Dcuda-headers={cuda}', f'-Dtools={tools}', '-Dtests=false']
        verb = ['configure', BUILD] if (BUILD / 'build.ninja').is_file() else ['setup', BUILD]
        must(['meson', *verb, *options])
        must(['meson', 'compile', '-C', BUILD])
        library = BUILD / 'shim/libgpulimit.so'
        stat = stat or str(BUILD / 'tools/gpulimit-stat')
    stat = stat or str(pathlib.Path(library).resolve().parents[1] / 'tools/gpulimit-stat')
    if not os.access(stat, os.X_OK):
        sys.exit('there is no gpulimit-stat: install libjansson-dev and libsmartcols-dev, or set '
                 'GPULIMIT_STAT to one made by tests/gpu/carry elsewhere')
    return pathlib.Path(library).resolve(), os.path.abspath(stat), cuda


def compile_program(name, sources, cuda):
    must([CC, '-std=gnu11', '-O2', '-g', '-D__CUDA_API_VERSION_INTERNAL', '-isystem', cuda, '-o', BUILD / name, *sources,
          '-ldl', '-lpthread'])


def introduce():
    """Date, GPU, driver and versions: what the figures are figures of."""
    print('date  ', datetime.datetime.now().astimezone().isoformat(timespec='seconds'))
    try:
        print('gpu   ', subprocess.run(['nvidia-smi', '--query-gpu=name,memory.total,driver_version',
                                        '--format=csv,noheader'], capture_output=True, text=True).stdout.strip())
    except OSError:
        print('gpu    unknown: no nvidia-smi')
    versions = []
    for package in ('torch', 'jax', 'cupy-cuda13x', 'cupy-cuda12x', 'numba', 'numba-cuda'):
        try:
            versions.append(f'{package} {importlib.metadata.version(package)}')
        except importlib.metadata.PackageNotFoundError:
            pass
    print('python', sys.version.split()[0] + ',', ', '.join(versions) or 'no framework', flush=True)


def summarise(counts):
    """The last line of a runner, and how it ends."""
    skipped = f', {counts["skip"]} skipped' if counts['skip'] else ''
    print(f'{counts["ok"] + counts["late"]} passed, {counts["FAIL"]} failed{skipped}')
    return 0 if counts['ok'] and not counts['FAIL'] else 1
