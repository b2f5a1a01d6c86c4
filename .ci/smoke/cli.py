"""The command plans, and lists the measures."""

import subprocess
import sys


def printed_by(*arguments: str) -> str:
    command = [sys.executable, "-m", "rag_selectivity", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


assert "BoR" in printed_by("explain")
assert "up to K = 12" in printed_by("plan", "--corpus-size", "58", "--relevant", "4")
