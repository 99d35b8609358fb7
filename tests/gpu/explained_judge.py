# What tests/gpu/explained asks of each answer. Each judge returns what is wrong, a list of sentences.
import collections
import re

import machine

CHILD = 'case_explained.py'
LEAKER = 'case_leak.py'
SECONDS_BETWEEN_LINES = 10
LINES_OF_THE_FIRST = 6
REPORTS_MOST = 3
REPORT_BYTES_MOST = 256 << 10
UNITS = {'bytes': 1 / (1 << 20), 'KiB': 1 / 1024, 'MiB': 1, 'GiB': 1024, 'K': 1 / 1024, 'M': 1, 'G': 1024}


def lines_with(mark, child=CHILD):
    """The numbers of a child's lines that end with a comment of that mark, and what follows it."""
    found = {}
    for number, line in enumerate((machine.HERE / child).read_text().splitlines(), 1):
        comment = re.search(rf'  # {mark} ?(.*)$', line)
        if comment:
            found[number] = comment.group(1)
    return found


LAYERS = {f'{CHILD}:{number} ': text for number, text in lines_with('layer').items()}
ASKER = f'{CHILD}:{next(iter(lines_with("refused")))} '


def mib(text):
    """Of "64 MiB", or "64M" as the tool writes it."""
    number, unit = re.fullmatch(r'([\d.]+) ?(\w+)', text).groups()
    return float(number) * UNITS[unit]


def judge_table(table):
    """Each layer has a row of its line with its size."""
    wrong = []
    for line, size in LAYERS.items():
        rows = [row.split() for row in table.splitlines() if line in row]
        if len(rows) != 1 or mib(rows[0][2]) != mib(size):
            wrong.append(f'no row of {size} for {line.strip()}')
    return wrong


def judge_first(lines):
    """The message names who asked and who holds, and its sizes add up."""
    wrong = []
    text = '\n'.join(lines)
    used = re.search(r': ([\d.]+ \w+) of the limit of', text)
    held = re.search(r'held by (.*)\.$', text, re.MULTILINE)
    if 'asked for by ' + ASKER not in text:
        wrong.append(f'{ASKER.strip()} is not named as the asker')
    if not used or not held:
        return wrong + ['it does not say what is in use, or who holds']
    parts = [re.sub(r' \(\d+ allocations?\)$', '', part) for part in held.group(1).split('; ')]
    total = sum(mib(re.search(r'([\d.]+ \w+)$', part).group(1)) for part in parts)
    if abs(total - mib(used.group(1))) > 0.1 * (len(parts) + 1):  # each is rounded to a tenth
        wrong.append(f'the holders add up to {total} MiB, in use are {used.group(1)}')
    named = [line for line in LAYERS if line in held.group(1)]
    if len(named) < 2 or max(LAYERS, key=lambda line: mib(LAYERS[line])) not in named:
        wrong.append(f'of the layers only {named} are named')
    return wrong


def judge_rest(said, seconds):
    most = LINES_OF_THE_FIRST + seconds // SECONDS_BETWEEN_LINES + 1
    return [] if len(said) <= most else [f'{len(said)} lines in {seconds:.1f} s, {most:.0f} would be right']


def sum_of(report):
    """What an out-of-memory report says that is held, added up."""
    return (sum(site['bytes'] for site in report['live_top']) + report['others']['bytes'] + report['idle_bytes'] +
            report['usage']['overhead_bytes'])


def judge_reports(reports):
    """Of a folder of out-of-memory reports: few, small, of the same line as the message, and sums that are exact."""
    wrong = []
    if not 1 <= len(reports) <= REPORTS_MOST:
        wrong.append(f'{len(reports)} reports')
    for text, report in reports:
        used = report['usage']['used_bytes']
        if len(text) > REPORT_BYTES_MOST:
            wrong.append(f'{len(text)} bytes')
        if sum_of(report) != used:
            wrong.append(f'its holders add up to {sum_of(report)}, in use are {used}')
        frames = [f'{frame["file"].rpartition("/")[2]}:{frame["line"]} ' for frame in
                  report['request']['python_frames']]
        if ASKER not in frames:
            wrong.append(f'{ASKER.strip()} is not among the frames of the request')
        sizes = collections.Counter()
        for site in report['live_top']:
            sizes[site['where'].split(' ')[0] + ' '] += site['bytes']
        wrong += [f'{line.strip()} holds {sizes[line]} instead of {size}' for line, size in LAYERS.items()
                  if sizes[line] != mib(size) * machine.MIB]
    return wrong


def judge_growth(table, line):
    """The leak is the first that grows."""
    rows = table.splitlines()[1:]
    if rows and line in rows[0]:
        return []
    return [f'{line.strip()} is not the first to grow']


def judge_words(printed, *words):
    return [f'it does not say "{word}"' for word in words if word not in printed]
