# What the static checks share: the project's files, and the form of a check's report.
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # meson's exit code for a test that could not run


def files(*patterns):
    """The project's own files, as git knows them; without git, all but hidden and build folders."""
    git = ['git', '-c', f'safe.directory={ROOT}', '-C', str(ROOT)]
    try:
        listed = subprocess.run(git + ['ls-files', '-z', '-co', '--exclude-standard'],
                                capture_output=True, check=True, text=True).stdout.split('\0')
        paths = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob('*')
                 if not any(part.startswith(('.git', 'build', '__pycache__'))
                            for part in path.relative_to(ROOT).parts[:-1])]
    paths = sorted({path for path in paths if path.is_file()})
    if patterns:
        paths = [path for path in paths if any(path.match(pattern) for pattern in patterns)]
    return paths


def name(path):
    return str(path.relative_to(ROOT))


def report(check, complaints, looked_at):
    """Ends the check: 0 without complaints and with something looked at, else 1."""
    for complaint in complaints:
        print(complaint)
    print(f'{check}: {looked_at} looked at, {len(complaints)} complaints')
    sys.exit(1 if complaints or not looked_at else 0)


def skip(why):
    print(why)
    sys.exit(SKIP)
