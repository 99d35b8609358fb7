# What is wrong with what one program of two_gpus and its ledger say, held against the true NVML.
import collections

from two_gpus_nvml import MIB

SLACK = 2 * MIB  # a small piece is let through where a block may have room, and taken back if it got its own
CARD_SLACK = 16 * MIB  # of the card's own figure, which has in it what no process's has

# ledger: devices of gpulimit-stat --json by UUID. figures: NVML's of the process by card, None if not listed.
# memory: NVML's of the cards.
Sight = collections.namedtuple('Sight', 'ledger figures memory')


def mib(number):
    return f'{number / MIB:.0f}' if number % MIB == 0 else f'{number / MIB:.1f}'


class Judge:
    def __init__(self, case, cards, used):
        self.case, self.cards = case, cards
        self.base = used  # of the cards, before the program began
        self.was_listed = False
        self.wrong, self.more = [], []
        self.looks = self.late = 0
        self.peaks = [0] * len(cards)
        self.furthest = 0

    def limit(self, card):
        return self.case.mib[card] * MIB

    def figure(self, card, sight, has_context):
        """What the driver holds for the process on a card, and how exact that is; None where nobody says."""
        if sight.figures[card] is not None:
            self.was_listed = True
            return sight.figures[card], SLACK
        if has_context and not self.was_listed:
            return max(0, sight.memory[card][0].used - self.base[card]), CARD_SLACK
        return None, SLACK

    def judge_views(self, said, card):
        """cuMemGetInfo and NVML of a card that CUDA shows."""
        limit, answers = self.limit(card), list(said['nvml'].values())
        first, second = answers[0]
        if any(answer != answers[0] for answer in answers):
            yield f'NVML differs by index, UUID and bus: {said["nvml"]}'
        if first[:3] != second[:3] or second[3] or first[0] != first[1] + first[2]:
            yield f'NVML\'s versions differ, or do not add up: {first}, {second}'
        if said['total'] != limit or first[0] != limit:
            yield f'total {mib(said["total"])} by CUDA, {mib(first[0])} by NVML, not {mib(limit)}'
        if said['info'] is not None and said['info'] != first[:2]:
            yield f'cuMemGetInfo has (total, free) {said["info"]}, NVML {first[:2]}'

    def judge_ledger(self, step, said, card, sight):
        device = sight.ledger.get(said['uuid'])
        managed = step.get('managed', {}).get(said['uuid'], 0)
        figure, slack = self.figure(card, sight, said['info'] is not None)
        free = said['nvml']['ByUUID'][0][1]
        if device is None:
            if said['info'] is not None or said['committed'] or figure:
                yield 'the ledger does not have it'
            return
        if device['limit_bytes'] != self.limit(card) or device['gpu_index'] != said['ordinal']:
            yield f'the ledger has limit {device["limit_bytes"]}, index {device["gpu_index"]}'
        charged, overhead = device['charged_bytes'], device['overhead_bytes']
        if device['committed_bytes'] != said['committed'] or charged != device['committed_bytes'] + overhead:
            yield (f'charged {mib(charged)}, committed {mib(device["committed_bytes"])}, overhead {mib(overhead)}, '
                   f'but the program holds {mib(said["committed"])}')
        if free != max(0, self.limit(card) - charged):
            yield f'free is {mib(free)}, charged {mib(charged)}'
        if figure is None:
            grown = sight.memory[card][0].used - self.base[card]
            if overhead:
                yield f'overhead {mib(overhead)} without a context'
            if not -SLACK <= grown - charged <= CARD_SLACK:
                yield f'charged {mib(charged)} without a context, but the card has given {mib(grown)}'
            return
        self.furthest = max(self.furthest, abs(charged - managed - figure), key=abs)
        if abs(charged - managed - figure) > slack:
            yield (f'charged {mib(charged)}, of which managed {mib(managed)}, overhead {mib(overhead)}, but the '
                   f'driver holds {mib(figure)}')
        if abs(device['untracked_bytes'] or 0) > SLACK:
            yield f'untracked {mib(device["untracked_bytes"])}'

    def judge_limit(self, step, said, card, sight):
        figure, slack = self.figure(card, sight, said['info'] is not None)
        device = sight.ledger.get(said['uuid'], {'denials': 0})
        if figure is not None and figure > self.limit(card) + slack:
            yield f'the driver holds {mib(figure)}: over the limit of {mib(self.limit(card))}'
        if step.get('full') == said['uuid'] and not device['denials']:
            yield 'it refused nothing, by the ledger'

    def judge_hidden(self, said, card, sight):
        """A card that CUDA does not show, or not yet: then only its size is known."""
        for first, second in said['nvml'].values():
            for mine, true in ((first, sight.memory[card][0]), (second, sight.memory[card][1])):
                if mine[0] != true.total or abs(mine[2] - true.used) > SLACK:
                    yield f'hidden from CUDA, but NVML has {mine}, not {list(true)}'
        if said['uuid'] in sight.ledger:
            yield 'hidden from CUDA, but in the ledger'

    def judge_foreseen(self, said, card):
        """Before cuInit NVML has the limits already."""
        for first, second in said['nvml'].values():
            if first[:2] != [self.limit(card)] * 2 or second[:2] != first[:2]:
                yield f'before cuInit NVML has {first}, {second}, not {mib(self.limit(card))}'

    def look(self, step, sight):
        """What is wrong at a step, in words."""
        wrong = []
        self.peaks = [max(peak, figure or 0) for peak, figure in zip(self.peaks, sight.figures)]
        index = {card.uuid: number for number, card in enumerate(self.cards)}
        order = [index[said['uuid']] for said in sorted(step['visible'], key=lambda each: each['ordinal'])]
        if step['visible'] and order != list(self.case.order):
            wrong.append(f'CUDA shows the cards {order}')
        for said in step['visible']:
            card = index[said['uuid']]
            if 'torch' in step:
                said['info'] = step['torch'][said['uuid']]
            for part in (self.judge_views(said, card), self.judge_ledger(step, said, card, sight),
                         self.judge_limit(step, said, card, sight)):
                wrong += [f'{step["step"]}: card {card}: {text}' for text in part]
        for said in step['hidden']:
            card = index[said['uuid']]
            is_foreseen = not step['visible'] and card in self.case.order
            part = self.judge_foreseen(said, card) if is_foreseen else self.judge_hidden(said, card, sight)
            wrong += [f'{step["step"]}: card {card}: {text}' for text in part]
        return wrong

    def keep(self, wrong, is_late):
        self.looks += 1
        self.late += is_late and not wrong
        self.wrong += wrong

    def finish(self, peaks):
        """All that is wrong, once the program has ended. peaks: what was seen of it while it ran."""
        self.peaks = peaks = [max(pair) for pair in zip(self.peaks, peaks)]
        for card in self.case.order:
            if peaks[card] > self.limit(card) + SLACK:
                self.wrong.append(f'card {card}: the driver held {mib(peaks[card])} at a moment: over the limit')
        for card in set(range(len(self.cards))) - set(self.case.order):
            if peaks[card]:
                self.wrong.append(f'card {card}: hidden, but the driver held {mib(peaks[card])} there')
        if not self.looks:
            self.wrong.append('never looked at')
        self.more, self.wrong = self.wrong[1:], self.wrong[:1]
        return self.wrong

    def figures(self):
        cards = ', '.join(f'{mib(self.peaks[card])} of {self.case.mib[card]} MiB on card {card}'
                          for card in self.case.order)
        late = f', {self.late} of them right only after the next look' if self.late else ''
        by = 'NVML at most' if self.was_listed else 'not listed by NVML,'
        return f'{by} {cards}; ledger {mib(self.furthest)} MiB off at most; {self.looks} looks{late}'
