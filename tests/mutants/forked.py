"""pytest in a fork of a process that has imported what the tests need, but nothing of this package."""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

#: Bytes of address space that a run may take.
MEMORY = 8 << 30
#: polars is not among them: its threads do not survive a fork.
PRELOADED = (
    "_pytest.doctest",
    "_pytest.junitxml",
    "aiohttp",
    "coverage",
    "fractions",
    "hypothesis.extra.numpy",
    "hypothesis.strategies",
    "ir_measures",
    "jinja2",
    "krippendorff",
    "mpmath",
    "pandas",
    "pdb",
    "pyarrow.parquet",
    "pydantic",
    "pytest",
    "pytrec_eval",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.metrics",
    "sqlite3",
    "tqdm",
    "typer.testing",
)
#: As in pyproject.toml, but for the plugins of other packages, none of which these tests need.
OPTIONS = ("-p", "no:cacheprovider", "--tb=short", "-q", "-m", "not slow", "--disable-warnings")


@dataclass(frozen=True)
class Ran:
    """How a run ended: its exit code, or how it was stopped, and what the plugin in it reported."""

    code: int
    #: True if its time ran out.
    late: bool
    seconds: float
    report: dict[str, Any]
    output: str


class Tree:
    """A copy of the checkout, in which the mutants are put, and the processes that test it."""

    def __init__(self, root: Path, work: Path, like: Tree | None = None) -> None:
        self.root, self.folder, self._work = root, work / "tree", work
        shutil.rmtree(self.folder, ignore_errors=True)
        if like is None:
            left_out = shutil.ignore_patterns(".git", ".venv", ".nox", "__pycache__", "_build", ".*_cache", "mutants")
            shutil.copytree(root, self.folder, ignore=left_out)
        else:
            shutil.copytree(like.folder, self.folder)  # with what is compiled already
        data, beside = root.parent / "shared", work / "shared"
        if data.exists() and not beside.exists():
            beside.symlink_to(data.resolve())
        self._changes = 0
        for name in PRELOADED:
            with suppress(ImportError):
                import_module(name)
        gc.freeze()  # what the forks share is not looked at by their collectors, and so not copied
        loaded = [name for name in sys.modules if name.split(".")[0].startswith("rag_selectivity")]
        if loaded:
            raise RuntimeError(f"imported before the fork: {loaded}")

    def put(self, path: str, source: str) -> None:
        """Replace a file; its time of change is one that no file had, since that tells whether it must be compiled."""
        self._changes += 1
        file = self.folder / path
        shutil.copy2(file, self._work / "before.py")
        file.write_text(source, encoding="utf-8")
        os.utime(file, (2e9 + self._changes,) * 2)

    def restore(self, path: str) -> None:
        """Put back what `put` replaced, with its time of change; the checkout may have changed since."""
        shutil.copy2(self._work / "before.py", self.folder / path)

    def run(
        self, files: Sequence[str], make_plugin: Callable[[Path], Any], *, seconds: float, compiles: bool = False
    ) -> Ran:
        """Run pytest on some files; `seconds` of the processor at most, and six times as many by the clock."""
        told, output, scratch = self._work / "told.json", self._work / "output.txt", self._work / "scratch"
        told.unlink(missing_ok=True)
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                self._become(output, seconds, compiles=compiles)
                code = _pytest_run(files, make_plugin(told), scratch)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        status, late = None, False
        while status is None:
            ended, value, used = os.wait4(pid, os.WNOHANG)
            if ended:
                status, spent = value, used.ru_utime + used.ru_stime
            elif not late and time.monotonic() - start > 6 * seconds:
                late = True
                os.killpg(pid, signal.SIGKILL)
            else:
                time.sleep(0.01)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what a test may have left running
        code = os.waitstatus_to_exitcode(status)
        late = late or code == -signal.SIGXCPU
        shutil.rmtree(scratch, ignore_errors=True)
        report = json.loads(told.read_text(encoding="utf-8")) if told.exists() else {}
        return Ran(code, late, spent, report, output.read_text(encoding="utf-8", errors="replace"))

    def _become(self, output: Path, seconds: float, *, compiles: bool) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        paths = [str(self.folder), str(self.folder / "integrations")]
        checkouts = {str(self.root), str(self.root / "integrations"), ""}
        for name in [name for name in sys.modules if name == "tests" or name.startswith("tests.")]:
            del sys.modules[name]
        sys.path[:] = paths + [path for path in sys.path if path not in checkouts]
        sys.path_importer_cache.clear()
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        sys.dont_write_bytecode = not compiles
        os.chdir(self.folder)


def _pytest_run(files: Sequence[str], plugin: Any, scratch: Path) -> int:
    import hypothesis
    import pytest

    # The same examples in every run; a failure is not made smaller, since nobody reads it.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutants")
    chosen = ["-o", "addopts=--doctest-modules --import-mode=importlib", f"--basetemp={scratch}"]
    code = int(pytest.main([*OPTIONS, *chosen, *files], plugins=[plugin]))
    package = sys.modules.get("rag_selectivity")
    if package is not None and not str(package.__file__).startswith(os.getcwd()):
        raise RuntimeError(f"tested {package.__file__}")
    return code
