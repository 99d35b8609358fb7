# Where a scenario takes place: programs under the library on a simulated GPU, the tools that look at them, and the
# transcript of both.
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from normal import Normal

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'schema'))
import schema  # noqa: E402

# From tests/golden/meson.build.
TOOLS = pathlib.Path(os.environ.get('TOOLS_FOLDER', ''))
SIMGPU = os.environ.get('SIMGPU_FOLDER', '')
PROGRAMS = pathlib.Path(os.environ.get('GOLDEN_PROGRAMS', ''))
LIBRARY = os.environ.get('PRELOAD_LIBRARY', '')
OURS = ('GPU_LIMIT', 'SIMGPU_', 'LD_', 'NO_COLOR', 'CUDA_', 'XDG_', 'JPY_', 'SLURM_')


class Program:
    """A program that is running, up to where it says HOLD."""

    def __init__(self, stage, name, words, environment):
        self.stage, self.name = stage, name
        is_python = words[0].endswith('.py')
        path = sys.executable if is_python else str(_find(words[0]))
        shown = ['python3'] + words if is_python else ['./' + words[0]] + words[1:]
        settings = [f'{key}={value}' for key, value in environment.items()]
        # By short names, as what is printed of a command is cut at some length.
        self.process = subprocess.Popen(
            shown, executable=path, cwd=HERE if is_python else PROGRAMS.parent,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8',
            env={**stage.environment, 'LD_PRELOAD': LIBRARY, 'PYTHONDONTWRITEBYTECODE': '1', **environment})
        self.pid = self.process.pid
        stage.normal.add_pid(self.pid, f'<{name}>')
        stage.say(('\n$ ' if stage.lines else '$ ') + stage.normal.text(' '.join(settings + shown)))
        self._follow()

    def _follow(self):
        said = []
        for line in self.process.stdout:
            if line.startswith('HOLD'):
                break
            said.append(line)
        self.stage.say(self.stage.normal.text(''.join(said)).rstrip('\n'))

    def go_on(self):
        self.process.stdin.write('\n')
        self.process.stdin.flush()
        self._follow()

    def end(self):
        """Lets it go on to its end."""
        while self.process.poll() is None:
            try:
                self.process.stdin.write('\n')
                self.process.stdin.flush()
            except BrokenPipeError:
                pass
            self._follow()
            try:
                self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        self._ended()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.stage.say(f'\n$ kill -KILL <{self.name}>')
        self._close()

    def _ended(self):
        if self.process.returncode != 0:
            self.stage.say(f'[exit status {self.process.returncode}]')
        self._close()

    def _close(self):
        self.process.stdin.close()
        self.process.stdout.close()


def _find(program):
    """In the build folder of this folder, or of tests/programs."""
    own = PROGRAMS / program
    return own if own.exists() else PROGRAMS.parent / 'programs' / program


class Stage:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='golden.'))
        self.ledgers = self.folder / 'ledgers'
        self.ledgers.mkdir()
        self.normal = Normal()
        self.lines = []
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(OURS)}
        self.environment.update(
            GPU_LIMIT_DIR=str(self.ledgers), XDG_RUNTIME_DIR=str(self.folder / 'run'),
            SIMGPU_STATE=str(self.folder / 'simgpu'), LD_LIBRARY_PATH=SIMGPU, LC_ALL='C.UTF-8', TERM='dumb', TZ='UTC',
            PATH=f'{pathlib.Path(sys.executable).parent}:{os.environ.get("PATH", "")}')
        (self.folder / 'run').mkdir()
        for path, name in ((self.ledgers, '<ledgers>'), (self.folder / 'run', '<run>'), (self.folder, '<folder>'),
                           (LIBRARY.split(':')[-1], '<libgpulimit.so>'), (sys.executable, 'python3'),
                           (f'{HERE}/', ''), (f'{TOOLS}/', ''), (PROGRAMS, '<programs>')):
            self.normal.add_path(path, name)

    def close(self):
        shutil.rmtree(self.folder)

    def say(self, text):
        if text:
            self.lines.append(text)

    def comment(self, text):
        self.say(f'\n# {text}' if self.lines else f'# {text}')

    def start(self, name, words, **environment):
        return Program(self, name, words.split(), environment)

    def _run(self, words, **environment):
        done = subprocess.run([TOOLS / words[0]] + words[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding='utf-8', cwd=self.folder,
                              env={**self.environment, **environment})
        return done.returncode, done.stdout

    def _told(self, words, status, text):
        shown = [self.normal.text(' '.join(words))]
        self.say(('\n$ ' if self.lines else '$ ') + ' '.join(shown))
        self.say(text.rstrip('\n'))
        if status != 0:
            self.say(f'[exit status {status}]')

    def tool(self, words):
        """Any tool of the build, without quotes among its words."""
        status, text = self._run(words.split())
        self._told(words.split(), status, self.normal.text(text))

    def stat(self, words='', lines=None, **environment):
        """gpulimit-stat with these words, of which PROGRAM.pid stand for themselves; only the first lines."""
        words = ['gpulimit-stat'] + str(words).split()
        status, text = self._run(words, **environment)
        is_plain = '-n' in words or '--noheadings' in words
        text = self.normal.text(text, is_plain, words[-1].isdigit() and '.' in words[-2])
        if lines is not None:
            text = '\n'.join(text.split('\n')[:lines] + ['...'])
        self._told(words, status, text)

    def json(self, words, name):
        """The same, in JSON, held against docs/schemas/NAME.schema.json."""
        words = ['gpulimit-stat'] + words.split()
        status, text = self._run(words)
        self._told(words, status, self._valid(text, name))

    def file(self, path, name):
        """What a file has, which is JSON likewise."""
        self.say(f'\n$ cat {self.normal.text(str(path))}')
        self.say(self._valid(path.read_text(encoding='utf-8'), name).rstrip('\n'))

    def show(self, name):
        self.say(f'\n$ cat {name}')
        self.say(self.normal.text((self.folder / name).read_text(encoding='utf-8')).rstrip('\n'))

    def list(self, name):
        self.say(f'\n$ ls {name}')
        self.say('\n'.join(sorted(self.normal.text(path.name) for path in (self.folder / name).iterdir())))

    def _valid(self, text, name):
        with open(HERE.parent.parent / 'docs' / 'schemas' / f'{name}.schema.json', encoding='utf-8') as file:
            rules = json_of(file.read())
        wrong = [line for value in schema.documents(text) for line in schema.complaints(rules, value, True)]
        return '\n'.join(wrong) or self.normal.json(text)

    def text(self):
        return '\n'.join(self.lines) + '\n'


def json_of(text):
    rules, = schema.documents(text)
    schema.check(rules)
    return rules
