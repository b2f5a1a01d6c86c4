"""The demo runs and writes its page, its figures and its plot."""

import subprocess
import sys
from pathlib import Path

subprocess.run([sys.executable, "-m", "rag_selectivity", "demo", "--output", "demo"], check=True)
assert sorted(file.suffix for file in Path("demo").iterdir()) == [".html", ".json", ".png"]
