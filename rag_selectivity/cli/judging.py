"""Options and output that the commands with an LLM judge, `grade` and `claims`, share."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from rag_selectivity.cli import PROGRAM
from rag_selectivity.cli.output import INTERRUPTED, MISTAKE, NOT_PASSED
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
        """The judge behind the endpoint; without `key` it needs no key, for a dry run."""
        from rag_selectivity.grading.openai_judge import OpenAIJudge

        return OpenAIJudge(
            model,
            base_url=self.base_url,
            api_key=None if key else "none",
            api_key_env=self.api_key_env,
            headers=_headers(self.header),
            temperature=self.temperature,
        )


@dataclass(frozen=True)
class Asking:
    """What may be spent, and how fast requests are sent.

    Budget
    ------
    max_calls : COUNT
        Send at most this many requests.
    max_cost : AMOUNT
        Spend at most this much. Needs prices, or an endpoint that says what a request costs.
    concurrency : COUNT
        Most requests at the same time. A run begins with 1, then 4.

    [judge]
    -------
    max_tokens
        Spend at most this many tokens.
    price_in
        Price of a million prompt tokens.
    price_out
        Price of a million answer tokens.
    rpm
        Most requests in any 60 seconds.
    tpm
        Most tokens in any 60 seconds.
    max_answer_tokens
        Most tokens of an answer, reasoning included; after a cut answer, the limit is 4 times as high.
    timeout
        Longest time for a request.
    attempts
        Most requests for a call that fails for a temporary reason, such as a server error.
    max_wait
        Longest wait that the endpoint may ask for (Retry-After). After a longer one the run stops.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    concurrency: int = 16
    max_tokens: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    rpm: float | None = None
    tpm: float | None = None
    max_answer_tokens: int = 1000
    timeout: float = 60.0
    attempts: int = 6
    max_wait: float = 120.0

    def options(self) -> dict[str, Any]:
        """As options of the functions that ask."""
        from rag_selectivity.grading.gate import Budget, Limits

        limits = {
            name: getattr(self, name) for name in ("concurrency", "rpm", "tpm", "timeout", "attempts", "max_wait")
        }
        prices = {"price_in": self.price_in, "price_out": self.price_out}
        return {
            "limits": Limits(**limits, answer_tokens=self.max_answer_tokens),
            "budget": Budget(calls=self.max_calls, tokens=self.max_tokens, cost=self.max_cost, **prices),
            "progress": not SETTINGS.quiet,
        }


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


def exit_unless_complete(stopped_by: str | None, left: int) -> None:
    """Exit with 130 after Ctrl-C, with 2 if the endpoint ended the run, and with 1 if work is left."""
    if stopped_by == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if stopped_by == "endpoint":
        raise typer.Exit(MISTAKE)
    if stopped_by or left:
        raise typer.Exit(NOT_PASSED)
