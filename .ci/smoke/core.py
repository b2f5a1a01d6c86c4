"""Dicts are measured with numpy and scipy alone, and the command names the extra that it needs."""

import subprocess
import sys

import rag_selectivity as rs

report = rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d", "e"]}}, corpus_size=100, depths=[1, 2])
assert abs(report["BoR@1"].value - 6.643856189774724) < 1e-12

command = [sys.executable, "-m", "rag_selectivity"]
done = subprocess.run(command, capture_output=True, text=True, check=False)
assert done.returncode == 2, done
assert "rag-selectivity[cli]" in done.stderr, done
