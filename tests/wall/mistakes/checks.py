"""Makes a mistake, and says what is wrong with its answer."""

import shlex
import warnings
from collections.abc import Callable
from typing import Any

from tests.wall import worlds


def wrong_with_command(words: str, code: int, parts: tuple[str, ...]) -> str:
    """What is wrong with how a command answers; empty if it names each part in one line and exits with the code."""
    done = worlds.command(*shlex.split(words))
    said = " ".join(done.err.split())
    if done.code != code:
        return f"exit code {done.code}, not {code}: {said}"
    errors = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
    if code == 2 and (len(errors) != 1 or not errors[0].startswith("error: ")):
        return f"no single line of an error: {done.err}"
    return _lacks(said, parts)


def wrong_with_call(call: Callable[[], Any], error: type[Exception], parts: tuple[str, ...]) -> str:
    """What is wrong with how a call answers; empty if it raises the error and names each part."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except error as raised:
        return _lacks(str(raised), parts)
    except ModuleNotFoundError:
        raise
    except Exception as raised:
        return f"{type(raised).__name__}, not {error.__name__}: {raised}"
    return f"no {error.__name__}"


def _lacks(said: str, parts: tuple[str, ...]) -> str:
    lacking = [part for part in parts if part not in said]
    return f"lacks {', '.join(lacking)}: {said}" if lacking else ""
