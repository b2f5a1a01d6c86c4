"""`rag-selectivity claims`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import judging as j
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import whole_numbers
from rag_selectivity.cli.output import SETTINGS, TABLE_FORMATS, chosen_format, show

EXAMPLES = (
    "rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --depths 1,3",
    "rag-selectivity claims --samples ragas.jsonl --store claims.db --model gpt-5-mini --check recall --batch "
    "--format json",
)


def claims(
    samples: Annotated[Path, o.input_file("Samples: JSONL or Parquet of user_input, retrieved_contexts, reference.")],
    store: j.StoreOption,
    model: j.ModelOption,
    base_url: j.BaseUrlOption = None,
    api_key_env: j.ApiKeyEnvOption = "OPENAI_API_KEY",
    header: j.HeaderOption = None,
    temperature: j.TemperatureOption = None,
    max_answer_tokens: j.MaxAnswerTokensOption = 1000,
    batch: Annotated[
        bool, o.flag(o.JUDGE, "--batch", "Send all passages of a sample in one call: cheaper, less reliable.")
    ] = False,
    check: Annotated[
        list[str] | None,
        o.option(
            o.MEASURES, "NAME", "Check: precision, recall, entities or relevance (default: all). Repeat for more."
        ),
    ] = None,
    depths: Annotated[str | None, o.option(o.MEASURES, "K,K", "Depths, as in 1,3,5 (default: 1,2,3,5,10,20).")] = None,
    whole_context: Annotated[
        str | None,
        o.option(o.MEASURES, "K,K", "Depths at which the judge reads all passages together as well."),
    ] = None,
    max_calls: j.MaxCallsOption = None,
    max_tokens: j.MaxTokensOption = None,
    max_cost: j.MaxCostOption = None,
    price_in: j.PriceInOption = None,
    price_out: j.PriceOutOption = None,
    concurrency: j.ConcurrencyOption = 16,
    rpm: j.RpmOption = None,
    tpm: j.TpmOption = None,
    timeout: j.TimeoutOption = 60.0,
    attempts: j.AttemptsOption = 6,
    max_wait: j.MaxWaitOption = 120.0,
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
    csv_safe: o.CsvSafeOption = False,
) -> None:
    """Check which claims of reference answers the passages support.

    An LLM reads the passages. The result is context precision, recall, entity recall and relevance at every depth.

    The key is read from OPENAI_API_KEY, or from the variable of --api-key-env.
    """
    from rag_selectivity.grading.claims import check_claims
    from rag_selectivity.results.claims import CHECKS

    chosen_format(format, output, TABLE_FORMATS)
    judge = j.openai_judge(model, base_url, api_key_env, header, temperature, key=True)
    with j.resumable():
        result = check_claims(
            samples,
            store=store,
            judge=judge,
            checks=check or CHECKS,
            depths=whole_numbers(depths, "--depths"),
            whole_context=whole_numbers(whole_context, "--whole-context") or (),
            batch=batch,
            limits=j.limits_of(concurrency, rpm, tpm, timeout, attempts, max_wait, max_answer_tokens),
            budget=j.budget_of(max_calls, max_tokens, max_cost, price_in, price_out),
            progress=not SETTINGS.quiet,
        )
    show(result if result.stopped is None else replace(result, resume=j.resume_command()), format, output)
    j.exit_unless_complete(result.stopped_by, result.failed)
