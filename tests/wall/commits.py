"""Checks that each commit touches scenarios of the wall or what is stored, never both."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WALL, STORED = "tests/wall/", "tests/wall/stored/"


def mixed_commits(commits: str = "HEAD", root: Path = ROOT) -> list[str] | None:
    """Each commit of a range that touches both, as `hash subject`; None where the history is not there."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false\n":
        return None  # the oldest commit of a shallow clone seems to add every file
    log = _git(root, "log", "--no-merges", "--name-only", "--format=%x00%h %s", commits, "--", WALL)
    if log is None:
        return None
    found = []
    for commit in log.split("\0")[1:]:
        title, *paths = [line for line in commit.splitlines() if line]
        if len({path.startswith(STORED) for path in paths}) == 2:
            found.append(title)
    return found


def _git(root: Path, *words: str) -> str | None:
    """What git prints; None if there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout
