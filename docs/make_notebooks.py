"""Executes the notebooks of docs/tutorials in place: `python docs/make_notebooks.py [NAME …]`.

Each runs in a kernel of its own, without network, and writes into a temporary folder. What is stored of it has no
times, no paths of this machine, and no settings of an editor.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
#: Bytes of a stored notebook, which a site and a code host show as it is.
MOST_BYTES = 400_000


def notebooks() -> list[Path]:
    return sorted(TUTORIALS.glob("*.ipynb"))


def executed(path: Path, commands: Path = Path(sys.executable).parent) -> Any:
    """The notebook with the outputs of a run in a new kernel, whose commands are those of a folder.

    Raises
    ------
    CellExecutionError
        If a cell raises an error.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    with TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name=KERNEL["name"],
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute(env=settings(folder, commands))
    return cleaned(notebook)


def settings(folder: str, commands: Path) -> dict[str, str]:
    """The environment of a kernel: this copy of the packages, and nothing of the user's own configuration."""
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PATH": os.pathsep.join([str(commands), os.environ.get("PATH", "")]),
        "TMPDIR": folder,
        "IPYTHONDIR": str(Path(folder) / "ipython"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        # Those of other packages name the files of this machine.
        "PYTHONWARNINGS": "ignore,default::UserWarning",
        "RAGAS_DO_NOT_TRACK": "true",
        "LANGSMITH_TRACING": "false",
        # Nobody answers at this port: what would leave the machine does not.
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def cleaned(notebook: Any) -> Any:
    """The notebook with fixed metadata, and the outputs in one form."""
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            # Which of the two streams arrives first differs between runs.
            cell.outputs.sort(key=lambda output: output.get("name", "") == "stderr")
        for output in cell.get("outputs", ()):
            output.pop("metadata", None)
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = nbformat.from_dict({})
                # The plain form of a result that has a page is its whole content.
                if "text/html" in output.data:
                    output.data.pop("text/plain", None)
    return notebook


def texts_of(cell: Any) -> list[str]:
    """What a reader sees of the outputs of a cell, without pictures, styles and white space at the ends of lines."""
    found = []
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            found.append(_plain(output.text))
        elif "image/png" in output.get("data", {}):
            found.append("(a picture)")
        elif "text/html" in output.get("data", {}):
            found.append(
                _plain(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<style>.*?</style>", "", output.data["text/html"])))
            )
        elif "text/plain" in output.get("data", {}):
            found.append(_plain(output.data["text/plain"]))
    return found


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def problems_of(text: str) -> list[str]:
    """What a stored notebook must not hold: paths and names of the machine it ran on, warnings, too many bytes."""
    private: Mapping[str, str] = {
        "a path of the project": str(ROOT),
        "a home folder": str(Path.home()),
        "a temporary folder": gettempdir(),
        "the folder of Python": sys.prefix,
    }
    found = [f"{what}, {each}" for what, each in private.items() if each in text]
    if "Warning:" in text:
        found.append("a warning")
    if len(text.encode()) > MOST_BYTES:
        found.append(f"{len(text.encode()):,} bytes, more than {MOST_BYTES:,}")
    return found


def main(names: Sequence[str]) -> int:
    chosen = [path for path in notebooks() if not names or path.stem in names]
    with ThreadPoolExecutor() as pool:
        made = dict(zip(chosen, pool.map(executed, chosen), strict=True))
    status = 0
    for path, notebook in made.items():
        text = nbformat.writes(notebook) + "\n"
        path.write_text(text, encoding="utf-8")
        for problem in problems_of(text):
            print(f"{path}: holds {problem}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
