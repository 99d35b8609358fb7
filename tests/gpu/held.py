# What the cases share: they stop where there is something to look at, say what they hold themselves, and wait
# for the runner to compare it with the ledger. By hand, Enter lets a case go on.
import json
import sys

MIB = 1 << 20
LIMIT = 2048 * MIB  # tests/gpu/run sets it for every case here


def hold(step, kinds=(), framework=0, slack=0, denials=0):
    """framework bytes are what this process holds by its own account, of the kinds named. The ledger must have
    all of that, and at most slack bytes more; the case says why more is right. denials: how many at least."""
    print('HOLD ' + json.dumps({'step': step, 'kinds': list(kinds), 'framework': framework, 'slack': slack,
                                'denials': denials}), flush=True)
    sys.stdin.readline()


def check(truth, what):
    if not truth:
        sys.exit(f'not so: {what}')


def skip(why):
    print(why)
    sys.exit(77)


def main(cases):
    """Runs the case that the command line names."""
    cases[sys.argv[1]]()
