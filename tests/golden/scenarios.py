# The scenarios, by name: what is run and what is looked at. Their transcripts are NAME.txt.
import os
import sys


def why_not(name):
    """Why a scenario cannot be played here; None if it can."""
    if name in OF_PYTHON and os.environ.get('PRELOAD_LIBRARY', '').count(':'):
        return 'a library with a sanitizer cannot be preloaded into Python'
    if name in OF_PYTHON and not (3, 9) <= sys.version_info[:2] <= (3, 14):
        return 'this Python is none whose frames are read'
    if name in OF_SYMBOLS and not os.environ.get('TOOLS_HAVE_SYMBOLS'):
        return 'gpulimit-stat is built without libdw'
    return None


def words(stage):
    """What gpulimit-stat says without any process: of itself, and of wrong command lines."""
    stage.stat('--version')
    stage.stat('--help')
    stage.stat()
    stage.stat('alocs')
    stage.stat('--nonsense')
    stage.stat('allocs --by colour')
    stage.stat('allocs --min-size much')
    stage.stat('--top 3')
    stage.stat('report -b')
    stage.stat('-p 12x')
    stage.stat('-p 999999991')
    stage.stat('1 2 3')
    stage.stat('0')
    stage.stat('-u 65534')
    stage.stat('--ledger-dir /nonexistent')
    stage.stat('hooks', lines=8)
    stage.stat('hooks 1')
    stage.stat('doctor -p 999999991')


def launcher(stage):
    """What gpulimit-run says of itself, and of wrong command lines."""
    stage.tool('gpulimit-run --version')
    stage.tool('gpulimit-run --help')
    stage.tool('gpulimit-run')
    stage.tool('gpulimit-run -m 1G')
    stage.tool('gpulimit-run -m lots -- true')
    stage.tool('gpulimit-run --nonsense -- true')
    stage.tool('gpulimit-run --lib /nonexistent -- true')
    stage.tool('gpulimit-run -m 1G -- /nonexistent')
    stage.tool('gpulimit-run -m 1G -- /dev/null')


def python(stage):
    """A training program in Python that is refused a batch, and who holds what."""
    train = stage.start('train', 'train.py', GPU_LIMIT_MB='512')
    stage.comment('who is there')
    stage.stat()
    stage.comment('who holds the memory')
    stage.stat('allocs')
    stage.stat('allocs --by python')
    stage.stat('allocs --by size --top 2')
    stage.stat('allocs --min-size 48M')
    stage.stat('allocs --older-than 1d')
    stage.stat('allocs -v')
    stage.comment('and when it has freed its batch')
    train.go_on()
    stage.stat('allocs --by python -b')
    train.end()


def native(stage):
    """A native program on two GPUs, in every form of the tables."""
    solver = stage.start('solver', 'solver', GPU_LIMIT_MB='0=512M,1=256M', SIMGPU_DEVICES='2')
    stage.environment['SIMGPU_DEVICES'] = '2'
    stage.comment('who is there')
    stage.stat()
    stage.stat('-b -g 1')
    stage.stat('-n')
    stage.stat(f'-p {solver.pid} 0.1 2')
    stage.comment('who holds the memory')
    for key in 'site', 'python', 'api', 'kind', 'tag', 'stream', 'thread', 'size':
        stage.stat(f'allocs --by {key}')
    stage.stat('allocs -g 0 -v')
    stage.stat('allocs -l')
    stage.stat('allocs -l -n -b')
    stage.stat('allocs --top 1')
    stage.json('--json', 'stat')
    stage.json('--json --allocs -g 1', 'stat')
    solver.end()


def told(stage, what, command, **environment):
    """A program's own words and the library's, to its end."""
    stage.comment(what)
    stage.start('pid', command, **environment).end()


def messages(stage):
    """What the library tells, and when."""
    told(stage, 'refused, and later given as much', 'over_limit 100 300', GPU_LIMIT_MB='448')
    told(stage, 'larger than the whole limit', 'over_limit 100 512', GPU_LIMIT_MB='256')
    told(stage, 'the limit has no room for a context', 'over_limit', GPU_LIMIT_MB='32')
    told(stage, 'the card is full below the limit', 'over_limit 100 512', GPU_LIMIT_MB='4096', SIMGPU_MEMORY_MB='400',
         SIMGPU_STATE=str(stage.folder / 'small'))
    stage.comment('the card is full of others')
    small = {'SIMGPU_MEMORY_MB': '900', 'SIMGPU_STATE': str(stage.folder / 'shared')}
    other = stage.start('other', 'over_limit 100 300', **small)
    told(stage, 'and the next one has to hear of it', 'over_limit 100 512', GPU_LIMIT_MB='1024', **small)
    other.end()
    told(stage, 'what the program asked for is counted', 'over_limit 100 300', GPU_LIMIT_MB='350',
         GPU_LIMIT_COUNT='allocations')
    told(stage, 'silent', 'over_limit 100 512', GPU_LIMIT_MB='256', GPU_LIMIT_VERBOSE='0')
    told(stage, 'no limit', 'over_limit 100 512')
    told(stage, 'a wrong setting', 'over_limit', GPU_LIMIT_MB='lots')
    told(stage, 'another', 'over_limit', GPU_LIMIT_MB='256', GPU_LIMIT_STACKS='deep')
    told(stage, 'and another', 'over_limit', GPU_LIMIT_MB='256', GPU_LIMIT_REPORT='run.txt')
    told(stage, 'a variable that there is not', 'over_limit', GPU_LIMIT_MIB='256')
    told(stage, 'with a banner', 'over_limit 100 100', GPU_LIMIT_MB='512', GPU_LIMIT_VERBOSE='2')
    told(stage, 'with allocations', 'over_limit 250 100', GPU_LIMIT_MB='512', GPU_LIMIT_VERBOSE='3')
    told(stage, 'no place for a ledger', 'over_limit 100 512', GPU_LIMIT_MB='256', GPU_LIMIT_VERBOSE='2',
         GPU_LIMIT_DIR='/nonexistent')


def reports(stage):
    """What a run leaves behind, what the tool makes of that, and of a process that lives or was killed."""
    train = stage.start('train', 'train.py', GPU_LIMIT_MB='512', GPU_LIMIT_REPORT='stderr')
    stage.comment('of a process that lives')
    stage.stat(f'report -p {train.pid}')
    train.end()
    stage.comment('of one that has ended')
    stage.stat(f'report -p {train.pid}')
    stage.json(f'report --json -p {train.pid}', 'report')
    stage.comment('of one that was killed, without a limit')
    killed = stage.start('killed', 'train.py 64')
    killed.kill()
    stage.stat(f'report -p {killed.pid}')
    stage.comment('of a file')
    for name, batch in ('large', 512), ('small', 100):
        run = stage.start(name, f'train.py {batch}', GPU_LIMIT_MB='512', GPU_LIMIT_VERBOSE='0',
                          GPU_LIMIT_REPORT=str(stage.folder / f'{name}.json'))
        run.end()
    stage.file(stage.folder / 'small.json', 'report')
    stage.stat('report small.json')
    stage.stat('report --diff small.json large.json')
    stage.stat('report --diff -b small.json large.json')
    stage.stat('report nothing.json')
    stage.stat('report')
    stage.stat('report --diff small.json')


def runtime(stage):
    """A program of the CUDA runtime's, known by that one's names; and its phases."""
    renderer = stage.start('render', 'renderer', GPU_LIMIT_MB='384')
    stage.stat('allocs')
    stage.stat('allocs --by api')
    stage.stat('allocs --by tag')
    stage.stat('allocs --by stream')
    stage.stat('allocs -l')
    renderer.end()


def phases(stage):
    """A program that tells its phases, and leaks."""
    train = stage.start('train', 'phases.py', GPU_LIMIT_MB='512')
    stage.stat('allocs --by tag')
    stage.stat('allocs --by python')
    stage.comment('what only grows')
    stage.stat('allocs --growing')
    stage.stat('allocs --growing --by python -v')
    stage.comment('the trend between its marks')
    stage.stat(f'report -p {train.pid}')
    train.end()


def refusals(stage):
    """The reports of refusals, and what the tool makes of them."""
    (stage.folder / 'termination-log').touch()
    train = stage.start('train', 'train.py', GPU_LIMIT_MB='512', GPU_LIMIT_VERBOSE='0',
                        GPU_LIMIT_TERMINATION_LOG=str(stage.folder / 'termination-log'))
    stage.list('run/gpulimit')
    stage.show('termination-log')
    first = stage.folder / 'run' / 'gpulimit' / f'oom-{train.pid}-1.json'
    stage.file(first, 'oom')
    stage.stat(f'report {first}')
    stage.stat(f'check --max-denials 0 {first}')
    train.end()


def checks(stage):
    """Assertions for continuous integration."""
    for name, batch in ('large', 512), ('small', 100):
        run = stage.start(name, f'train.py {batch}', GPU_LIMIT_MB='512', GPU_LIMIT_VERBOSE='0',
                          GPU_LIMIT_REPORT=str(stage.folder / f'{name}.json'))
        run.end()
    stage.stat('check --peak-below 500M --max-denials 2 --max-live-at-exit 1G large.json')
    stage.stat('check --peak-below 400M --max-denials 0 --max-live-at-exit 0 large.json')
    stage.stat('check --compare small.json --tolerance 5 large.json')
    stage.stat('check --compare small.json --tolerance 10% large.json')
    stage.stat(f'check --max-denials 0 -p {run.pid}')
    stage.json('check --json --peak-below 400M --max-denials 2 large.json', 'check')
    stage.stat('check --peak-below 400M --max-denials 2 --junit out.xml large.json')
    stage.show('out.xml')
    stage.stat('check large.json')
    stage.stat('check --peak-below 400M')
    stage.stat('check --peak-below much large.json')


def stubborn(stage):
    """Two hundred refusals: the first is explained, the others are told together."""
    solver = stage.start('solver', 'solver stubborn', GPU_LIMIT_MB='256')
    stage.stat()
    solver.end()


def ends(stage):
    """Processes that have ended, and the doctor."""
    stage.stat('doctor')
    exited = stage.start('exited', 'over_limit 100 512', GPU_LIMIT_MB='256', GPU_LIMIT_VERBOSE='0')
    exited.end()
    killed = stage.start('killed', 'over_limit 100 512', GPU_LIMIT_MB='256', GPU_LIMIT_VERBOSE='0')
    killed.kill()
    live = stage.start('live', 'over_limit 100 512', GPU_LIMIT_MB='256', GPU_LIMIT_VERBOSE='0')
    stage.comment('with those that have ended')
    stage.stat()
    stage.stat('-a')
    stage.stat(f'-p {exited.pid}')
    stage.stat(f'-a -p {killed.pid}')
    stage.stat(f'allocs -a -p {killed.pid}')
    stage.comment('the doctor')
    stage.stat('doctor')
    stage.stat(f'doctor -p {live.pid}')
    stage.stat(f'doctor -p {killed.pid}')
    stage.json(f'doctor --json -p {exited.pid},{live.pid}', 'doctor')
    live.end()
    stage.comment('a process without a limit')
    free = stage.start('free', 'over_limit 100 512')
    stage.stat()
    stage.stat(f'doctor -p {free.pid}')
    free.end()
    stage.comment('a file that is no ledger')
    (stage.ledgers / 'gpulimit.1.1').write_bytes(b'no ledger' * 1000)
    stage.stat()
    stage.stat('doctor')


OF_PYTHON = ('checks', 'phases', 'python', 'refusals', 'reports')
OF_SYMBOLS = ('ends', 'native', 'runtime')
