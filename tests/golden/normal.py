# What differs from run to run and from machine to machine, replaced by words: process ids, ages, times, addresses,
# folders, the frames of other people's code. What is left is compared to the letter.
import json
import os
import pwd
import re

# Columns whose cells vary: the word for a cell, None for that of a process; the width that the column gets, so that
# the table stays one. In a table that is printed again and again these have at least STEADY characters.
STEADY, STEADY_COLUMNS = 6, ('PID', 'USER')
COLUMNS = {'PID': (None, 8), 'AGE': ('<age>', 6), 'AT': ('<age>', 6), 'OLDEST': ('<age>', 6), 'USER': ('<user>', 6),
           'ADDRESS': ('<address>', 14), 'THREAD': (None, 7), 'SCORE': ('<score>', 7), 'GROWTH': ('<growth>', 10)}
ON_THE_LEFT = ('USER', 'ADDRESS')
HEADINGS = re.compile(r'^ *(GPU +PID|AT +USED) ')
ROW = re.compile(r'^ *((\d+|-) +\d+|\d\S*s) ')
CELL = re.compile(r'\S+')

PID = r'(\d+)'
PIDS = [r'process +%s', r'pid %s', r'-p %s', r'(?<=>),%s', r'gpulimit\.%s\.', r'oom-%s-', r'"pid": %s',
        r'(?:ok  |warn|FAIL) %s ', r'PID %s', r'kill %s']
TEXTS = [
    (r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z', '<time>'),
    (r'\b\d\d:\d\d:\d\d\b', '<hh:mm:ss>'),
    (r'(?m)^ +\d+\.\d+ s  ', '  <seconds> s  '),
    (r'\b\d+\.\d s\b', '<seconds> s'),
    (r'over time .*; up to', 'over time     <chart>; up to'),
    (r'(?m)^ +[! ]*! +refused$', '                <marks>  refused'),
    (r'\+0x[0-9a-f]+', '+<offset>'),
    (r'python3\.\d+', 'python3'),
    (r'(gpulimit\.<\w+>)\.\d+', r'\1.<time>'),
    (r'^/(\S*/)?tests/golden/', ''),
    (r'can be written, \S+ free', 'can be written, <size> free'),
]
# Paths of sources, which are as long as it is far from the build to them: before other paths are named in them.
SOURCES = [
    (r'\((/|\.\./)(\S*/)?tests/golden/', '('),
    (r'^\.\./(\S*/)?tests/golden/', ''),  # of a text of JSON that is a path
]
# The heading of a stack and its lines; those of them that are the program's own.
STACK = re.compile(r'^ {6}\S+ in \d+ by$')
FRAME = re.compile(r'^ {8}\S')
OWN = re.compile(r'^ {8}(<programs>/(?!.* _start).* \(|\S+\.py:\d+ )')


class Normal:
    """Of one scenario: it learns the processes and folders as they come."""

    def __init__(self):
        self.pids = {}
        self.user = _user()
        self.paths = []

    def add_pid(self, pid, name):
        self.pids[str(pid)] = name

    def add_path(self, path, name):
        self.paths.append((str(path), name))
        self.paths.sort(key=lambda pair: -len(pair[0]))


    def text(self, text, is_plain=False, is_stream=False):
        """is_plain: a table without headings, whose columns nobody can tell. is_stream: one that is repeated."""
        lines = text.split('\n')
        lines = [self._plain(line) for line in lines] if is_plain else self._tables(lines, is_stream)
        text = '\n'.join(lines)
        for pattern, word in SOURCES:
            text = re.sub(pattern, word, text)
        for path, name in self.paths:
            text = text.replace(path, name)
        for pattern in PIDS:
            text = re.sub(r'(?<!\w)' + pattern % PID, self._replace_pid, text)
        for pattern, word in TEXTS:
            text = re.sub(pattern, word, text)
        return '\n'.join(_without_others(text.split('\n')))

    def _replace_pid(self, match):
        whole, pid = match.group(0), match.group(1)
        return whole.replace(pid, self.pids.get(pid, pid))

    def _plain(self, line):
        if not ROW.match(line):
            return line
        words = [self._word(word) for word in line.split()]
        for place, word in enumerate(words[:-1]):
            if word.isdigit() and words[place + 1] == '<age>' and words[place - 1].startswith('cu'):
                words[place] = '<other>'  # the thread of a list
        return ' '.join(words)

    def _word(self, word):
        if word == self.user:
            return '<user>'
        return self.pids.get(word, re.sub(r'^0x[0-9a-f]+$', '<address>', re.sub(r'^\d+(s|m\d\ds)$', '<age>', word)))

    # ---- tables ----

    def _tables(self, lines, is_stream):
        start = None
        lines = list(lines)
        for number, line in enumerate(lines + ['']):
            if HEADINGS.match(line):
                start = number
            elif start is not None and (line == '' or line.startswith('$')):
                rows = [row for row in range(start + 1, number) if ROW.match(lines[row])]
                for at, new in zip([start] + rows, self._table([lines[row] for row in [start] + rows], is_stream)):
                    lines[at] = new
                start = None
        return lines

    def _table(self, lines, is_stream):
        for heading in reversed(CELL.findall(lines[0])):
            if heading in COLUMNS:
                lines = self._column(lines, heading, is_stream)
        return lines

    def _column(self, lines, heading, is_stream):
        word, width = COLUMNS[heading]
        found = re.search(r'(?<!\S)' + heading + r'(?!\S)', lines[0])
        on_the_left = heading in ON_THE_LEFT
        edge = found.start() if on_the_left else found.end()
        cells = [_cell(line, edge, on_the_left) for line in lines]
        first, last = min(cell.start() for cell in cells), max(cell.end() for cell in cells)
        if is_stream and heading in STEADY_COLUMNS:
            first, last = (first, max(last, edge + STEADY)) if on_the_left else (min(first, edge - STEADY), last)
        new = []
        for line, cell in zip(lines, cells):
            text = cell.group()
            if text not in (heading, '-'):
                text = word or self.pids.get(text, '<other>')
            new.append(line[:first] + (text.ljust(width) if on_the_left else text.rjust(width)) + line[last:])
        return new

    # ---- JSON ----

    def json(self, text):
        """A document, or one a line."""
        decoder, at, told = json.JSONDecoder(), 0, []
        while at < len(text.rstrip()):
            value, at = decoder.raw_decode(text, at)
            at += len(text[at:]) - len(text[at:].lstrip())
            told.append(json.dumps(self._value(None, value), indent=2))
        return '\n'.join(told) + '\n'

    def _value(self, key, value):
        if key in JSON_WORDS and value is not None:
            return JSON_WORDS[key]
        if isinstance(value, dict):
            return {name: self._value(name, item) for name, item in value.items()}
        if isinstance(value, list):
            values = [self._value(key, item) for item in value if not str(key).endswith('frames') or _is_own(item)]
            return values + ['<frames of others>'] * (len(values) < len(value))
        if value is None or isinstance(value, bool):
            return value
        if key in ('pid', 'thread_id'):
            return self.pids.get(str(value), '<other>')
        return self.text(value) if isinstance(value, str) else value


OTHERS = '        <frames of others>'
JSON_WORDS = {'host': '<host>', 'ppid': '<ppid>', 'cgroup': '<cgroup>', 'monotonic_ns': '<ns>',
              'uid': '<uid>', 'age_seconds': '<age>', 'oldest_age_seconds': '<age>', 'after_seconds': '<seconds>',
              'interval_seconds': '<seconds>', 'samples': '<samples>',
              'address': '<address>', 'offset': '<offset>', 'build_id': '<build-id>', 'generated_time': '<time>'}


def _user():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())  # as the tools show who has no name


def _is_own(frame):
    where = (frame.get('module') or frame.get('file') or '') if isinstance(frame, dict) else ''
    return where.endswith(('solver', 'renderer')) or '/tests/golden/' in where


def _cell(line, edge, on_the_left):
    for cell in CELL.finditer(line):
        if (cell.start() if on_the_left else cell.end()) == edge:
            return cell
    raise ValueError(f'no cell at {edge} in {line!r}')


def _without_others(lines):
    new, is_stack = [], False
    for line in lines:
        is_stack = bool(STACK.match(line)) or is_stack and bool(FRAME.match(line))
        if not is_stack or STACK.match(line) or OWN.match(line):
            new.append(line)
        elif new[-1] != OTHERS:
            new.append(OTHERS)
    return new
