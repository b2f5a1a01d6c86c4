"""Every extra by itself on a fresh machine: one wheel, one cache of wheels, an empty environment for each.

Called by `.ci/run`; a failed installation, or a door that does not open from there, fails the check.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CORE = """
import rag_selectivity as rs
report = rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d", "e"]}}, corpus_size=100, depths=[1, 2])
assert abs(report["BoR@1"].value - 6.643856189774724) < 1e-12
"""
WITHOUT_CLI = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "rag_selectivity"], capture_output=True, text=True)
assert done.returncode == 2 and "[cli]" in done.stderr, done.stderr
"""
COMMAND = ["-m", "rag_selectivity"]


def having(*lines: str) -> list[str]:
    """Python that tries the core first."""
    return ["-c", "\n".join([CORE, *lines])]


#: What has to work with nothing but the extra.
DOORS: dict[str, list[list[str]]] = {
    "": [having(), ["-c", WITHOUT_CLI]],
    "files": [having("import rag_selectivity.io.tables, pyarrow.parquet")],
    "cli": [[*COMMAND, "measures"], [*COMMAND, "plan", "--corpus-size", "58", "--relevant", "4"]],
    "report": [having("assert '<svg' in report.to_html()")],
    "demo": [[*COMMAND, "demo", "--output", "demo"]],
    "judge": [having("from rag_selectivity.grading.openai_judge import OpenAIJudge", "rs.grade, rs.check_claims")],
    "ragas": [having("import rag_selectivity_ragas as a", "a.selectivity, a.RANWG, a.RagasJudge")],
    "llama-index": [having("import rag_selectivity_llama_index as a", "a.SelectivityEvaluator, a.LiveSelectivity")],
    "ray": [having("import rag_selectivity.scale.ray", "rs.ray.evaluate, rs.ray.grade")],
    "langchain": [having("import rag_selectivity_langchain as a", "a.SelectivityCallback, a.ToolSelectivityCallback")],
}


def run(*words: object, cwd: Path | None = None) -> None:
    """A command that must succeed; its output is shown if it does not."""
    environment = {**os.environ, "RAGAS_DO_NOT_TRACK": "true", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))[:200]}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def try_extra(extra: str, wheel: Path, cache: Path, folder: Path) -> str:
    """Install the wheel with one extra into an empty environment, and use it there."""
    place = folder / (extra or "core")
    venv.create(place / "venv", with_pip=True)
    python = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    wanted = f"{wheel}[{extra}]" if extra else wheel
    run(python, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", cache, wanted)
    for door in DOORS[extra]:
        run(python, *door, cwd=place)
    return extra or "no extra"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder / "dist", ROOT)
        (wheel,) = (folder / "dist").glob("*.whl")
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "-w", folder / "cache", f"{wheel}[all,ray]")
        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            for done in pool.map(lambda extra: try_extra(extra, wheel, folder / "cache", folder), DOORS):
                print(f"fresh machine, {done}: works", flush=True)


if __name__ == "__main__":
    main()
