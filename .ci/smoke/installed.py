"""What is used is the package that was installed, not the sources, and the command says its version."""

import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import rag_selectivity

installed = distribution("rag-selectivity")
packages = Path(sysconfig.get_path("purelib"))
assert Path(rag_selectivity.__file__).is_relative_to(packages), rag_selectivity.__file__
direct = installed.read_text("direct_url.json") or ""
assert "editable" not in direct, direct

for command in (["rag-selectivity"], [sys.executable, "-m", "rag_selectivity"]):
    printed = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"rag-selectivity {installed.version}\n", printed
