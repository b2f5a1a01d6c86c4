"""What the commands that ask an LLM judge share: `grade` and `claims`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_selectivity.cli import options as o
from rag_selectivity.cli.output import INTERRUPTED, NOT_PASSED

if TYPE_CHECKING:
    from rag_selectivity.grading.runner import Budget, Limits

StoreOption = Annotated[
    Path, o.option(o.OUTPUT, "STORE", "Label store that keeps the answers; created if it does not exist.")
]
ModelOption = Annotated[str, o.option(o.JUDGE, "NAME", "Model, as the endpoint calls it.")]
BaseUrlOption = Annotated[
    str | None,
    o.option(o.JUDGE, "URL", "Address of an OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI)."),
]
TemperatureOption = Annotated[
    float | None, o.option(o.JUDGE, "NUMBER", "Sampling temperature (default: the model's own).")
]

MaxCallsOption = Annotated[int | None, o.option(o.BUDGET, "COUNT", "Stop after this many calls.")]
MaxTokensOption = Annotated[int | None, o.option(o.BUDGET, "COUNT", "Stop after this many tokens.")]
MaxCostOption = Annotated[
    float | None, o.option(o.BUDGET, "AMOUNT", "Stop at this cost; needs --price-in and --price-out.")
]
PriceInOption = Annotated[float | None, o.option(o.BUDGET, "AMOUNT", "Price of a million prompt tokens.")]
PriceOutOption = Annotated[float | None, o.option(o.BUDGET, "AMOUNT", "Price of a million answer tokens.")]

ConcurrencyOption = Annotated[int, o.option(o.LIMITS, "COUNT", "Calls at the same time.")]
RpmOption = Annotated[float | None, o.option(o.LIMITS, "COUNT", "Most requests in a minute.")]
TpmOption = Annotated[float | None, o.option(o.LIMITS, "COUNT", "Most tokens in a minute.")]
TimeoutOption = Annotated[float, o.option(o.LIMITS, "SECONDS", "Longest wait for an answer.")]
AttemptsOption = Annotated[
    int, o.option(o.LIMITS, "COUNT", "Most tries of a call whose failure may pass, such as a rate limit.")
]


def openai_judge(model: str, base_url: str | None, temperature: float | None, timeout: float, *, key: bool) -> Any:
    """The judge behind an endpoint; without `key` it can be made and not asked."""
    from rag_selectivity.grading.openai_judge import OpenAIJudge

    api_key = None if key else "none"
    return OpenAIJudge(model, base_url=base_url, api_key=api_key, temperature=temperature, timeout=timeout)


def budget_of(
    calls: int | None, tokens: int | None, cost: float | None, price_in: float | None, price_out: float | None
) -> Budget:
    """The budget of the options."""
    from rag_selectivity.grading.runner import Budget

    return Budget(calls=calls, tokens=tokens, cost=cost, price_in=price_in, price_out=price_out)


def limits_of(concurrency: int, rpm: float | None, tpm: float | None, timeout: float, attempts: int) -> Limits:
    """The limits of the options."""
    from rag_selectivity.grading.runner import Limits

    return Limits(concurrency=concurrency, rpm=rpm, tpm=tpm, timeout=timeout, attempts=attempts)


def exit_unless_complete(stopped: str | None, left: int) -> None:
    """Exit with 130 after Ctrl-C, and with 1 where work is left over."""
    if stopped == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if stopped or left:
        raise typer.Exit(NOT_PASSED)
