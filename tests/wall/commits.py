"""Checks that each commit touches scenarios of the wall or what is stored, never both."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WALL, STORED = "tests/wall/", "tests/wall/stored/"


def mixed_commits(commits: str = "HEAD", root: Path = ROOT) -> list[str] | None:
    """Each commit of a range that touches both, as `hash subject`; None where the history is not there."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--name-only", "--format=%x00%h %s", commits, "--", WALL]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    if log.returncode:
        return None
    found = []
    for commit in log.stdout.split("\0")[1:]:
        title, *paths = [line for line in commit.splitlines() if line]
        if len({path.startswith(STORED) for path in paths}) == 2:
            found.append(title)
    return found
