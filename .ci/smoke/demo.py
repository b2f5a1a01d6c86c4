"""The demo runs and writes its page."""

import subprocess
import sys
from pathlib import Path

subprocess.run([sys.executable, "-m", "rag_selectivity", "demo", "--output", "demo.html"], check=True)
assert Path("demo.html").read_text(encoding="utf-8").startswith("<!doctype html>")
