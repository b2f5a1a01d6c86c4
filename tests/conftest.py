"""Shared by the tests: the public test collections, a browser, no network, and what a call tells."""

import gc
import os
import runpy
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

# Before a framework is imported: where nobody answers, each call home takes a quarter of a second.
os.environ |= {
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION": "true",
    "RAGAS_DO_NOT_TRACK": "true",
}
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores already: products whose threads wait for each other take many times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import rag_selectivity as rs
from tests.browser import chromium

__all__ = ["chromium", "data"]

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Frameworks stay in memory from here on; walking through them again and again took a sixth of the time of all."""
    gc.set_threshold(20_000, 20, 20)  # seldom then as well
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, Any, list[Any]]:
    """No doctests of test files: one that cannot be imported would be skipped, and then hold no tests."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: one that starts last keeps a single core busy at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public test collections; tests that need it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the public test collections are not beside this checkout (../shared/data)")
    return DATA


@pytest.fixture(scope="session")
def written_sample(tmp_path_factory) -> Path:
    """A folder with the sample data that no test changes: to copy it takes a hundredth of the time to write it."""
    from rag_selectivity.sample import write_sample

    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture(scope="module")
def sample(written_sample, tmp_path_factory) -> Path:
    """A folder with the sample data, for the tests of a file."""
    return Path(shutil.copytree(written_sample, tmp_path_factory.mktemp("sample") / "try"))


@pytest.fixture
def printed_by(monkeypatch, capsys) -> Callable[..., str]:
    """What a script prints; it runs in this process, so that frameworks are imported once for many tests."""

    def run(script: Path, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        monkeypatch.syspath_prepend(script.parent)
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def no_socket_beyond_this_machine(monkeypatch) -> None:
    """No framework may call home: Ragas' telemetry, or anything else."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            assert address[0] in ("127.0.0.1", "::1"), f"a connection to {address}"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def told(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result, or the error's words; and the warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", rs.SelectivityWarning)
        try:
            result = work()
        except rs.InputError as error:
            result = str(error)
    return result, [str(each.message) for each in heard]


@pytest.fixture(scope="session")
def ragas() -> Any:
    pytest.importorskip("ragas")
    import rag_selectivity_ragas

    return rag_selectivity_ragas
