"""Options and output that the commands with an LLM judge, `grade` and `claims`, share."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

from rag_selectivity.cli import PROGRAM
from rag_selectivity.cli.output import INTERRUPTED, MISTAKE, NOT_PASSED, tell
from rag_selectivity.cli.settings import SETTINGS
from rag_selectivity.errors import InputError


@dataclass(frozen=True)
class Server:
    """The endpoint, and how it is asked.

    Judge
    -----
    base_url : URL
        Address of an OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI).
    header : K=V
        Header of each request, such as api-key=$KEY for Azure. Repeat for more.

    [judge]
    -------
    api_key_env
        Environment variable that holds the key.
    temperature
        Sampling temperature (default: the model's own).
    """

    base_url: str | None = None
    header: list[str] | None = None
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = None

    def judge(self, model: str, *, key: bool) -> Any:
        """What makes the judge behind the endpoint; without `key` it needs no key, for a dry run."""
        from rag_selectivity.grading.openai_judge import OpenAIJudge

        return partial(
            OpenAIJudge,
            model,
            base_url=self.base_url,
            api_key=None if key else "none",
            api_key_env=self.api_key_env,
            headers=_headers(self.header),
            temperature=self.temperature,
        )


def _headers(given: list[str] | None) -> dict[str, str]:
    headers = {}
    for each in given or ():
        name, _, value = each.partition("=")
        if not name.strip():
            raise InputError("--header must be K=V, got a value without a name")
        if not value.strip():
            raise InputError(f"--header must be K=V, got {name!r} without a value; is the variable behind it set?")
        headers[name.strip()] = value.strip()
    return headers


def resume_command() -> str:
    """The command that continues: this one again, since the store keeps what is done; without keys and headers."""
    from rag_selectivity.grading.address import without_secrets

    shown: dict[str, Callable[[str], str]] = {
        "--header": lambda header: f"{header.partition('=')[0]}=…",
        "--base-url": without_secrets,
    }
    words: list[str] = []
    before = ""
    for word in sys.argv[1:]:
        option, equals, value = word.partition("=")
        if before in shown:
            words.append(shown[before](word))
        elif equals and option in shown:
            words.append(f"{option}={shown[option](value)}")
        else:
            words.append(without_secrets(word) if "://" in word else word)
        before = "" if before in shown else word
    return shlex.join([PROGRAM, *words])


@contextmanager
def resumable() -> Iterator[None]:
    """Print how to go on if a run ends with an error of the endpoint or with Ctrl-C."""
    SETTINGS.after_error = f"go on with: {resume_command()}"
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except InputError:
        SETTINGS.after_error = None
        raise
    SETTINGS.after_error = None


def exit_unless_complete(asked: Any, left: int, *, is_file: bool) -> None:
    """Exit with 130 after Ctrl-C, with 2 if the endpoint ended the run, and with 1 if work is left.

    Why a run was stopped is told too where the result, which says so, went to a file.
    """
    stopped_by = asked.stopped_by
    if is_file and asked.stopped is not None:
        tell(f"stopped: {asked.stopped.rstrip('.')}; go on with: {resume_command()}")
    if stopped_by == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if stopped_by == "endpoint":
        raise typer.Exit(MISTAKE)
    if stopped_by or left:
        raise typer.Exit(NOT_PASSED)
