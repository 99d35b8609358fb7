# Whether the limit held, by what was seen from outside of one process: absolutely, from its start to its end.
import collections

from machine import MIB, mib

NEAR_MIB = 160
# Of the card's memory, 3.25 MiB that cuInit takes and 5.6 of a context are in no process's figure.
CARD_MIB = 9
REST_MIB = 2
# What a process takes that NVML does not list is measured by the change of the card around some calls: code that
# comes with a launch is not seen.
BLIND_MIB = 64
STONE_MIB = 32  # what roads give back after late code, STONE_BYTES in roads_overhead.c
LEAST_SAMPLES = 20

# track: an nvml.Track. said: what the program says of itself. device: its ledger at rest; rest: NVML's figure
# then. Both None for roads.
Seen = collections.namedtuple('Seen', 'track said device rest')
Verdict = collections.namedtuple('Verdict', 'result text over row')


def untracked(device, rest, is_blind):
    """What NVML's figure has beyond what the ledger explains; None: it cannot be known."""
    if not is_blind:
        return device['untracked_bytes']
    if rest is None:
        return None
    return rest - (device['charged_bytes'] - device['by_kind']['managed']['bytes'])


def judge_rest(case, seen, sources):
    """What is wrong with the ledger at rest, and what is untracked. Late code is, where it cannot be seen."""
    wrong = []
    is_blind = 'delta' in sources
    allowed = max(BLIND_MIB, case.late) if is_blind else REST_MIB
    if seen.device is None:
        return ['it was not looked at while at rest'], None
    bytes_ = untracked(seen.device, seen.rest, is_blind)
    if bytes_ is None and seen.track.process is not None:
        wrong.append('nobody knows what is untracked at rest')
    elif bytes_ is not None and abs(bytes_) > allowed * MIB:
        wrong.append(f'{mib(bytes_)} MiB untracked at rest ({allowed} allowed)')
    if seen.device['truth_source'] not in sources:
        wrong.append(f'overhead is measured as {seen.device["truth_source"]}, not {" or ".join(sources)}')
    return wrong, bytes_


def judge(case, limit_mib, sources, seen, is_alone=True):
    """sources: what overhead may rest on; delta where NVML lists no processes, as the process itself sees it.
    is_alone: no other case ran meanwhile."""
    is_blind = 'delta' in sources
    track, said = seen.track, seen.said
    figure = 'process' if case.figure == 'process' and track.process is not None else 'card'
    top = track.process if figure == 'process' else track.card
    more = (max(case.more, BLIND_MIB) if is_blind else case.more) + (CARD_MIB if figure == 'card' else 0)
    over = top - limit_mib * MIB
    wrong, bytes_ = judge_rest(case, seen, sources) if case.is_program and said.get('started', True) else ([], None)
    refusals = said.get('refusals', 0)
    source = seen.device['truth_source'] if seen.device else ''
    over_text = f'{mib(over)} over' if over > 0 else f'{mib(-over)} below'
    text = (f'NVML ({figure}) at most {mib(top)} MiB, {over_text}; by its own count {mib(said.get("held"))} MiB, '
            f'{refusals} refused; {track.samples} samples')
    if case.figure != figure:
        text += '; NVML does not list it'
    if bytes_ is not None:
        text += f'; at rest {mib(bytes_)} MiB untracked, by {source}'

    def verdict(result, *first):
        row = (f'{case.name}@{limit_mib}', limit_mib, f'{mib(top)} ({figure})', mib(over), refusals,
               '' if bytes_ is None else mib(bytes_), source, result)
        return Verdict(result, '; '.join([*first, text]), over, row)

    if figure == 'card' and not is_alone:
        return verdict('skip', 'NVML does not list it, and it is not alone on the card (try -j 1)')
    if track.samples < LEAST_SAMPLES:
        wrong.append(f'NVML was asked only {track.samples} times')
    if not case.library:
        if over <= more * MIB:
            wrong.append('without the library, and not over the limit')
        return verdict('FAIL' if wrong else 'ok', *wrong)
    if over > max(more, case.late) * MIB:
        if case.known:
            return verdict('skip', f'known: {case.known}')
        wrong.append(f'{mib(over)} MiB OVER the limit of {limit_mib} ({max(more, case.late)} allowed{case.why})')
    if not said.get('started', True):
        if limit_mib >= case.starts_from:
            wrong.append(f'unable to start: {said.get("error")}')
        else:
            return verdict('FAIL' if wrong else 'ok', *wrong, f'unable to start, as may be: {said.get("error")}')
    if case.near and top < (limit_mib - NEAR_MIB) * MIB:
        wrong.append(f'never near the limit, so it shows nothing (less than {limit_mib - NEAR_MIB} MiB)')
    if case.near and not refusals:
        wrong.append('never refused')
    if said.get('got_after', -1) > 0 and over > STONE_MIB * MIB and not is_blind:
        wrong.append(f'{said["got_after"]} pieces could be had while over the limit by more than was given back')
    if wrong:
        return verdict('FAIL', *wrong)
    return verdict('late' if over > more * MIB else 'ok')

