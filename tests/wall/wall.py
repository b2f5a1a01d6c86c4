"""Finds scenarios, runs them, compares what they return with what is stored, and stores it."""

import contextlib
import difflib
import inspect
import json
import math
import os
import pkgutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import rag_selectivity as rs

STORED = Path(__file__).parent / "stored"
PACKAGES = ("scenarios", "texts")
#: How far a figure and the end of an interval may be off, relatively; near 0, a thousandth of that absolutely.
FIGURE, END = 1e-12, 1e-9
#: Frameworks that call home or draw progress bars unless they are told not to.
QUIET = {
    "RAGAS_DO_NOT_TRACK": "true",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_DISABLE_PROGRESS_BAR": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_GENAI_EVAL_SKIP_TRACE_VALIDATION": "true",
    "LANGSMITH_TRACING": "false",
    "NO_COLOR": "1",
    "COLUMNS": "80",
}

Result = dict[str, Any] | str


class Missing(Exception):
    """Data or a package that a scenario needs is not there: it is skipped, visibly."""


def scenarios() -> dict[str, Callable[[], Result]]:
    """{name: function} of all public functions that the modules of scenarios define, in their order."""
    found = {}
    for package in PACKAGES:
        path = Path(__file__).parent / package
        for module in sorted(each.name for each in pkgutil.iter_modules([str(path)])):
            for name, function in vars(import_module(f"tests.wall.{package}.{module}")).items():
                if inspect.isfunction(function) and not name.startswith("_") and function.__module__.endswith(module):
                    found[f"{module}/{name}"] = function
    return found


def run(function: Callable[[], Result]) -> Result:
    """What a scenario returns, with the codes of the warnings that it raised, in values that JSON can hold."""
    before = dict(os.environ)
    os.environ.update(QUIET)
    try:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            contextlib.chdir(folder),
            warnings.catch_warnings(record=True) as heard,
        ):
            warnings.simplefilter("always")
            result = function()
    except (ModuleNotFoundError, rs.MissingExtraError) as error:
        raise Missing(f"needs the package {error.name}") from error
    finally:
        os.environ.clear()
        os.environ.update(before)
    if isinstance(result, str):
        return result
    codes = {each.message.code for each in heard if isinstance(each.message, rs.SelectivityWarning)}
    return {key: plain(value) for key, value in sorted({**result, "warnings": sorted(codes)}.items())}


def plain(value: Any) -> Any:
    """A value as JSON holds it: numbers of NumPy as Python's, NaN and infinities as words."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def file_of(name: str) -> Path:
    """Where what a scenario returned is stored."""
    found = [STORED / f"{name}{suffix}" for suffix in (".json", ".txt")]
    return found[1] if found[1].exists() else found[0]


def stored(name: str) -> Result | None:
    """What is stored of a scenario; None if nothing is."""
    path = file_of(name)
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".txt" else json.loads(text)


def accept(name: str, result: Result) -> None:
    """Store what a scenario returned."""
    path = STORED / f"{name}{'.txt' if isinstance(result, str) else '.json'}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result if isinstance(result, str) else as_json(result), encoding="utf-8")


def as_json(result: dict[str, Any]) -> str:
    """A line for each key, sorted; floats by repr."""
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(result[key], ensure_ascii=False)}"
        for key in sorted(result)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def differences(before: Result, now: Result) -> list[str]:
    """A line for each difference; none if they are equal."""
    if isinstance(before, str) or isinstance(now, str):
        lines = [text.splitlines() if isinstance(text, str) else [str(text)] for text in (before, now)]
        return [line for line in difflib.unified_diff(*lines, "stored", "now", n=0, lineterm="") if line[:3] != "@@ "]
    found = [f"{key}: {before[key]!r} is gone" for key in before.keys() - now.keys()]
    found += [f"{key}: {now[key]!r} is new" for key in now.keys() - before.keys()]
    both = before.keys() & now.keys()
    found += [f"{key}: {before[key]!r} → {now[key]!r}" for key in both if not same(key, before[key], now[key])]
    return sorted(found)


def same(key: str, before: Any, now: Any) -> bool:
    """Whether two values are equal, floats up to what may differ between machines."""
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(same(key, *pair) for pair in zip(before, now, strict=True))
    if isinstance(before, float) and isinstance(now, float | int) and not isinstance(now, bool):
        off = END if key.endswith(("low", "high")) else FIGURE
        return math.isclose(before, now, rel_tol=off, abs_tol=off / 1000)
    if isinstance(now, float) and isinstance(before, int) and not isinstance(before, bool):
        return same(key, now, before)
    return type(before) is type(now) and before == now
