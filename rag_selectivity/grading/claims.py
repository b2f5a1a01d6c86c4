"""Claim checks: which passage supports which claim of a reference answer, and what follows at every K.

The reference is taken apart into claims and entities once; then every passage is held against them in
one call. From that table come Context Precision, Recall, Entity Recall and Relevance at every K, what is
redundant, and the smallest set of passages that would have done.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, create_model

from rag_selectivity.errors import InputError
from rag_selectivity.grading.judge import GradingError, Message, Usage, judge_of
from rag_selectivity.grading.prompts import as_data, block, new_marker
from rag_selectivity.grading.runner import Budget, Call, Limits, Outcome, Runner, progress_bar, run_blocking
from rag_selectivity.grading.store import Settings, Store, StoredAnswer, digest
from rag_selectivity.measures import Outcome as Figures
from rag_selectivity.measures.base import FloatArray
from rag_selectivity.report.report import Estimate, finite, write_whole
from rag_selectivity.statistics.bootstrap import Bootstrap

SCHEMA = "rag-selectivity/claims/1"
PROMPT_VERSION = "1"
CHECKS = ("precision", "recall", "entities", "relevance")
MEASURES = {
    "precision": "ContextPrecision",
    "recall": "ContextRecall",
    "entities": "ContextEntityRecall",
    "relevance": "ContextRelevance",
}
_EXACT_COVER = 18


@dataclass(frozen=True, slots=True)
class Sample:
    """A question with what was retrieved for it and a reference answer, by Ragas' field names.

    `retrieved_contexts` are in rank order; `response` and the rest of Ragas' fields are not needed.
    """

    user_input: str
    retrieved_contexts: tuple[str, ...]
    reference: str | None = None
    id: str = ""


@dataclass(frozen=True)
class ClaimCheck:
    """What was found for one sample; rows are claims or entities, columns the passages in rank order.

    Attributes
    ----------
    sample : Sample
    claims, entities : tuple of str
        Of the reference.
    support : bool[claims, passages]
        Whether a passage by itself supports a claim.
    mentions : bool[entities, passages]
    useful : bool[passages]
        Whether a passage helps to arrive at the reference.
    statements, relevant : int64[passages]
        Statements of each passage, and those of them that bear on the question.
    whole : {K: share of claims that the top K support when read together}
    known : {check: bool}
        False where a call failed: the figures of that check are NaN.
    """

    sample: Sample
    claims: tuple[str, ...]
    entities: tuple[str, ...]
    support: NDArray[np.bool_]
    mentions: NDArray[np.bool_]
    useful: NDArray[np.bool_]
    statements: NDArray[np.int64]
    relevant: NDArray[np.int64]
    whole: Mapping[int, float] = field(default_factory=dict)
    known: Mapping[str, bool] = field(default_factory=dict)

    def context_precision(self, depth: int) -> float:
        """Mean precision at the ranks of the useful passages in the top K: 0 without one, NaN without passages."""
        if not self._known("precision") or not len(self.useful):
            return float("nan")
        useful = self.useful[:depth]
        if not useful.any():
            return 0.0
        ranks = np.flatnonzero(useful) + 1
        return float((np.arange(1, len(ranks) + 1) / ranks).mean())

    def context_recall(self, depth: int) -> float:
        """Claims that some passage of the top K supports by itself / all claims; NaN without claims."""
        return self._share(self.support, depth) if self._known("recall") else float("nan")

    def context_entity_recall(self, depth: int) -> float:
        """Entities of the reference that the top K mention / all of them; NaN without entities."""
        return self._share(self.mentions, depth) if self._known("entities") else float("nan")

    def context_relevance(self, depth: int) -> float:
        """Statements of the top K that bear on the question / all statements; NaN without statements."""
        total = int(self.statements[:depth].sum())
        if not self._known("relevance") or not total:
            return float("nan")
        return float(self.relevant[:depth].sum() / total)

    @property
    def redundancy(self) -> float:
        """Share of the supports that say again what an earlier passage supported; NaN without any."""
        supports = int(self.support.sum())
        return 1 - int(self.support.any(axis=1).sum()) / supports if supports else float("nan")

    @property
    def smallest_set(self) -> tuple[int, ...]:
        """The fewest passages (by position from 1) that support every claim which any passage supports.

        Exact up to 18 supporting passages; beyond, the greedy cover, which is at most a little larger.
        """
        wanted = self.support.any(axis=1)
        useful = [i for i in range(self.support.shape[1]) if self.support[:, i].any()]
        if len(useful) <= _EXACT_COVER:
            for size in range(len(useful) + 1):
                for chosen in combinations(useful, size):
                    if (self.support[:, chosen].any(axis=1) >= wanted).all():
                        return tuple(i + 1 for i in chosen)
        left, greedy = wanted.copy(), []
        while left.any():
            best = max(useful, key=lambda i: int((self.support[:, i] & left).sum()))
            greedy.append(best + 1)
            left &= ~self.support[:, best]
        return tuple(sorted(greedy))

    def figure(self, check: str, depth: int) -> float:
        """One of the four measures by the name of its check."""
        by_check = {
            "precision": self.context_precision,
            "recall": self.context_recall,
            "entities": self.context_entity_recall,
            "relevance": self.context_relevance,
        }
        return by_check[check](depth)

    def to_dict(self, checks: Sequence[str], depths: Sequence[int]) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "id": self.sample.id,
            "user_input": self.sample.user_input,
            "claims": list(self.claims),
            "support": [[int(cell) for cell in row] for row in self.support.tolist()],
            "entities": list(self.entities),
            "redundancy": finite(self.redundancy),
            "smallest_set": list(self.smallest_set),
            "measures": {
                f"{MEASURES[check]}@{depth}": finite(self.figure(check, depth)) for check in checks for depth in depths
            },
            **({"whole_context": {str(k): finite(v) for k, v in self.whole.items()}} if self.whole else {}),
        }

    def _known(self, check: str) -> bool:
        return self.known.get(check, True)

    def _share(self, table: NDArray[np.bool_], depth: int) -> float:
        return float(table[:, :depth].any(axis=1).mean()) if len(table) else float("nan")


@dataclass(frozen=True)
class ClaimReport:
    """What `check_claims` returns: a ClaimCheck for each sample, and the means with their intervals."""

    samples: tuple[ClaimCheck, ...]
    checks: tuple[str, ...]
    depths: tuple[int, ...]
    estimates: Mapping[str, Estimate]
    usage: Usage
    cost: float | None
    calls: int
    failed: int
    stopped: str | None
    judge: str

    def __getitem__(self, measure: str) -> Estimate:
        try:
            return self.estimates[measure]
        except KeyError:
            raise InputError(f"{measure} was not checked; there are {', '.join(self.estimates)}") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "judge": self.judge,
            "samples": len(self.samples),
            "calls": self.calls,
            "failed": self.failed,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cost": self.cost,
            "stopped": self.stopped,
            "measures": {key: estimate.to_dict() for key, estimate in self.estimates.items()},
            "per_sample": [sample.to_dict(self.checks, self.depths) for sample in self.samples],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_rows(self) -> list[dict[str, Any]]:
        """One row a measure and depth."""
        return [{"measure": key, **estimate.to_dict()} for key, estimate in self.estimates.items()]

    def to_text(self, *, ruled: bool = True) -> str:
        """Tables for a terminal."""
        from rag_selectivity.report.tables import align

        return "\n\n".join([self._heading(), align(*self._table(), ruled=ruled)])

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        from rag_selectivity.report.tables import markdown

        return "\n\n".join([f"**{self._heading()}**", markdown(*self._table())])

    def save(self, path: str | Path) -> None:
        """Write the JSON view to a file, whole or not at all."""
        write_whole(path, self.to_json() + "\n")

    def __str__(self) -> str:
        return self.to_text()

    def _heading(self) -> str:
        failed = f", {self.failed} calls failed" if self.failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{len(self.samples)} samples, {self.calls} calls to {self.judge}{failed}{stopped}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        from rag_selectivity.report.tables import number

        names = list(dict.fromkeys(key.partition("@")[0] for key in self.estimates))
        rows = []
        for depth in self.depths:
            row = [str(depth)]
            for name in names:
                cell = self.estimates.get(f"{name}@{depth}")
                row.append("·" if cell is None else f"{number(cell.value)} [{number(cell.low)}, {number(cell.high)}]")
            rows.append(row)
        return ["K", *names], rows


def check_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    bootstrap: Bootstrap = Bootstrap(),
) -> ClaimReport:
    """Hold what was retrieved against the claims of reference answers.

    Parameters
    ----------
    samples : list of dict or objects, or path
        With Ragas' fields: `user_input`, `retrieved_contexts` (in rank order) and `reference`. A Ragas
        dataset's samples serve, and JSONL or Parquet files.
    store : str or Path
        Answers are kept there; what has been asked is not asked again.
    judge : Judge or async function
    checks : sequence of {"precision", "recall", "entities", "relevance"}
        All four cost no more calls than one. Only relevance needs no reference.
    depths : sequence of int, optional
        Default: 1, 2, 3, 5, 10, 20 as far as the longest list reaches.
    whole_context : sequence of int
        K's at which the top K are read together as well: a claim that takes two passages is missed when
        each is read by itself. `ContextRecall(whole)@K`, one more call a sample and K.
    batch : bool
        All passages of a sample in one call instead of a call for each: cheaper, less reliable for long lists.
    limits, budget : Limits, Budget
    bootstrap : Bootstrap
        For the intervals of the means over samples.

    Returns
    -------
    ClaimReport

    Raises
    ------
    InputError
        If a sample lacks what its checks need.
    GradingError
        If the judge cannot be used at all.

    Notes
    -----
    Entities count as mentioned where their name stands in the passage, whatever the case and accents,
    or where the judge finds them under another name.
    """
    return run_blocking(
        lambda: acheck_claims(
            samples,
            store=store,
            judge=judge,
            checks=checks,
            depths=depths,
            whole_context=whole_context,
            batch=batch,
            limits=limits,
            budget=budget,
            bootstrap=bootstrap,
        )
    )


async def acheck_claims(
    samples: Any,
    *,
    store: str | Path,
    judge: Any,
    checks: Sequence[str] = CHECKS,
    depths: Sequence[int] | None = None,
    whole_context: Sequence[int] = (),
    batch: bool = False,
    limits: Limits = Limits(),
    budget: Budget = Budget(),
    bootstrap: Bootstrap = Bootstrap(),
) -> ClaimReport:
    """`check_claims` for a running event loop."""
    chosen_checks = _checks(checks)
    read = read_samples(samples, needs_reference=chosen_checks != ("relevance",))
    chosen = judge_of(judge)
    settings = Settings("claims", chosen.name, chosen.parameters, prompt_version=PROMPT_VERSION)
    with Store(store) as answers:
        asker = _Asker(answers, answers.settings_id(settings))
        watch, close = progress_bar(0, "checking")
        runner = Runner(chosen, limits, budget, watch)
        try:
            referenced = [sample for sample in read if sample.reference is not None]
            await asker.ask(runner, [_of_reference(sample) for sample in referenced])
            parts = {id(sample): asker.answer(_of_reference(sample)) for sample in referenced}
            questions = [
                question
                for sample in read
                for question in _of_passages(sample, parts.get(id(sample)), chosen_checks, whole_context, batch)
            ]
            await asker.ask(runner, questions)
        finally:
            close()
            if hasattr(chosen, "close"):
                await chosen.close()
        progress = runner.progress
        if progress.stopped is not None and progress.stopped.startswith("fatal: "):
            raise GradingError(f"{progress.stopped.removeprefix('fatal: ')}; nothing more was sent")
        found = tuple(
            _result(sample, parts.get(id(sample)), asker, chosen_checks, whole_context, batch) for sample in read
        )
    at = _depths(depths, found)
    return ClaimReport(
        samples=found,
        checks=chosen_checks,
        depths=at,
        estimates=_estimates(found, chosen_checks, at, whole_context, bootstrap),
        usage=progress.usage,
        cost=progress.cost if budget.price_in is not None else None,
        calls=progress.calls,
        failed=progress.failed,
        stopped=progress.stopped,
        judge=chosen.name,
    )


# -- samples -------------------------------------------------------------------------------------------


def read_samples(source: Any, *, needs_reference: bool = True) -> list[Sample]:
    """Samples from dicts, objects with Ragas' fields, a Ragas dataset, or a JSONL or Parquet file."""
    if isinstance(source, (str, Path)):
        from rag_selectivity.files import read_records

        rows: Iterable[tuple[str, Any]] = ((f"{source}:{line}", row) for line, row in read_records(source))
    else:
        rows = ((f"sample {number}", row) for number, row in enumerate(getattr(source, "samples", source), 1))
    found = [_sample(row, where, needs_reference) for where, row in rows]
    if not found:
        raise InputError("there are no samples to check")
    return found


def _sample(row: Any, where: str, needs_reference: bool) -> Sample:
    def value(name: str) -> Any:
        return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)

    question, contexts, reference = value("user_input"), value("retrieved_contexts"), value("reference")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where}: user_input (the question) is missing")
    if not isinstance(contexts, (list, tuple)) or not all(isinstance(text, str) for text in contexts):
        raise InputError(f"{where}: retrieved_contexts must be a list of texts, got {contexts!r}")
    if reference is not None and not isinstance(reference, str):
        raise InputError(f"{where}: reference must be a text, got {reference!r}")
    if needs_reference and not (reference or "").strip():
        raise InputError(f"{where}: reference (the right answer) is missing; only the check `relevance` does without")
    return Sample(question, tuple(contexts), reference, str(value("id") or value("query_id") or where.split()[-1]))


def _checks(checks: Sequence[str]) -> tuple[str, ...]:
    for name in checks:
        if name not in CHECKS:
            raise InputError(f"checks are {', '.join(CHECKS)}, got {name!r}")
    if not checks:
        raise InputError("no check was asked for")
    return tuple(name for name in CHECKS if name in checks)


def _depths(depths: Sequence[int] | None, found: Sequence[ClaimCheck]) -> tuple[int, ...]:
    if depths is not None:
        for depth in depths:
            if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
                raise InputError(f"depth {depth!r} is not a whole number ≥ 1")
        return tuple(sorted(set(depths)))
    longest = max(len(check.sample.retrieved_contexts) for check in found)
    return tuple(depth for depth in (1, 2, 3, 5, 10, 20) if depth <= max(1, longest))


# -- questions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Question:
    """Something to ask, by the content that decides its answer."""

    content: bytes
    system: str
    texts: tuple[tuple[str, str], ...]
    request: str
    schema: type[BaseModel]

    def call(self) -> Call:
        """With a marker of its own around every text."""
        marker = new_marker(*(text for _, text in self.texts))
        blocks = "\n\n".join(block(title, text, marker) for title, text in self.texts)
        messages = [
            Message(role="system", content=f"{self.system}\n\n{as_data(marker)}"),
            Message(role="user", content=f"{blocks}\n\n{self.request}"),
        ]
        return Call(messages, self.schema, self)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ReferenceParts(_Strict):
    """A reference answer taken apart."""

    claims: list[str] = Field(description="short statements that can be true or false by themselves")
    entities: list[str] = Field(description="named entities: people, places, organisations, works, dates, numbers")


class Statement(_Strict):
    """A statement of a passage, and whether it bears on the question."""

    statement: str
    relevant: bool


class WholeSupport(_Strict):
    """What passages support when they are read together."""

    reason: str
    supported: list[int] = Field(description="numbers of the supported claims")


_JUDGE = "You check what passages say, by their words and not by what you know yourself."
_FIELDS: dict[str, tuple[str, Any, str]] = {
    "recall": ("supported", list[int], "supported: numbers of the claims that the passage by itself supports."),
    "precision": ("useful", bool, "useful: whether the passage helps to arrive at the reference answer."),
    "entities": ("mentioned", list[int], "mentioned: numbers of the entities that it mentions, under whatever name."),
    "relevance": (
        "statements",
        list[Statement],
        "statements: every statement that the passage makes, and whether it bears on the question.",
    ),
}


def _question(
    kind: str, system: str, texts: Sequence[tuple[str, str]], request: str, schema: type[BaseModel]
) -> _Question:
    said = json.dumps([kind, system, [list(pair) for pair in texts], request, sorted(schema.model_fields)])
    return _Question(digest(said), system, tuple(texts), request, schema)


def _of_reference(sample: Sample) -> _Question:
    return _question(
        "reference",
        _JUDGE,
        [("question", sample.user_input), ("reference answer", sample.reference or "")],
        "Take the reference answer apart: its claims, each a short statement that can be true or false by itself, and "
        "the entities it names. Add nothing that it does not say.",
        ReferenceParts,
    )


@cache
def _passage_shape(checks: tuple[str, ...], several: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {"reason": (str, Field(description="one short sentence"))}
    if several:
        fields["passage"] = (int, Field(description="the passage's number"))
    fields |= {_FIELDS[check][0]: (_FIELDS[check][1], ...) for check in checks}
    one = create_model("PassageCheck", __config__=ConfigDict(extra="forbid"), **fields)
    every: Any = (list[one], ...)  # type: ignore[valid-type]
    return create_model("PassageChecks", __config__=ConfigDict(extra="forbid"), passages=every) if several else one


def _of_passages(
    sample: Sample, parts: Any, checks: tuple[str, ...], whole: Sequence[int], batch: bool
) -> list[_Question]:
    """A question for each passage (or one for all), and one for each K that is read as a whole."""
    if parts is None and sample.reference is not None and checks != ("relevance",):
        return []  # the reference itself could not be taken apart
    found = _passage_questions(sample, parts, checks, batch)
    found += [question for depth in whole if (question := _whole_question(sample, parts, depth)) is not None]
    return list({question.content: question for question in found}.values())


def _passage_questions(sample: Sample, parts: Any, checks: tuple[str, ...], batch: bool) -> list[_Question]:
    known = _known_texts(sample, parts, checks)
    asked = "\n".join(_FIELDS[check][2] for check in checks)
    passages = sample.retrieved_contexts
    if batch and passages:
        texts = [*known, *((f"passage {i}", text) for i, text in enumerate(passages, 1))]
        request = f"Say of every passage by itself, with its number:\n{asked}"
        return [_question("passages", _JUDGE, texts, request, _passage_shape(checks, True))]
    request = f"Say of the passage:\n{asked}"
    return [
        _question("passage", _JUDGE, [*known, ("passage", text)], request, _passage_shape(checks, False))
        for text in passages
    ]


def _whole_question(sample: Sample, parts: Any, depth: int) -> _Question | None:
    if parts is None or not parts["claims"] or not sample.retrieved_contexts:
        return None
    passages = enumerate(sample.retrieved_contexts[:depth], 1)
    texts = [*_known_texts(sample, parts, ("recall",)), *((f"passage {i}", text) for i, text in passages)]
    request = "Read the passages together. Which claims do they support, by themselves or taken together?"
    return _question("whole", _JUDGE, texts, request, WholeSupport)


def _known_texts(sample: Sample, parts: Any, checks: tuple[str, ...]) -> list[tuple[str, str]]:
    texts = [("question", sample.user_input)]
    if "precision" in checks:
        texts.append(("reference answer", sample.reference or ""))
    if "recall" in checks:
        texts.append(("claims", _numbered(parts["claims"])))
    if "entities" in checks:
        texts.append(("entities", _numbered(parts["entities"])))
    return texts


def _numbered(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


class _Asker:
    """Asks what the store does not know, and looks answers up."""

    def __init__(self, store: Store, settings: int) -> None:
        self.store = store
        self.settings = settings

    async def ask(self, runner: Runner, questions: Sequence[_Question]) -> None:
        new = {question.content: question for question in questions if self.answer(question) is None}

        def calls() -> Iterator[Call]:
            for question in new.values():
                yield question.call()

        await runner.run(calls(), self._keep)

    async def _keep(self, outcome: Outcome) -> int:
        question: _Question = outcome.call.subject
        value = outcome.answer.value.model_dump() if outcome.answer is not None else None
        record = StoredAnswer(
            self.settings,
            question.content,
            value,
            outcome.usage.prompt_tokens,
            outcome.usage.completion_tokens,
            outcome.cost,
            round(outcome.seconds, 4),
            outcome.attempts,
            outcome.error,
        )
        await asyncio.wrap_future(self.store.put([record]))
        return 1

    def answer(self, question: _Question) -> Any:
        return self.store.answer(self.settings, question.content)


# -- results -------------------------------------------------------------------------------------------


def _result(
    sample: Sample, parts: Any, asker: _Asker, checks: tuple[str, ...], whole: Sequence[int], batch: bool
) -> ClaimCheck:
    passages = sample.retrieved_contexts
    claims = tuple(parts["claims"]) if parts else ()
    entities = tuple(parts["entities"]) if parts else ()
    support = np.zeros((len(claims), len(passages)), bool)
    mentions = np.zeros((len(entities), len(passages)), bool)
    useful = np.zeros(len(passages), bool)
    statements, relevant = np.zeros(len(passages), np.int64), np.zeros(len(passages), np.int64)
    complete = parts is not None or checks == ("relevance",)
    answers: list[Any] = [None] * len(passages)
    if complete:
        answers = _answers(asker, _passage_questions(sample, parts, checks, batch), len(passages), batch)
    complete = complete and all(answer is not None for answer in answers)
    for i, answer in enumerate(answers):
        if answer is None:
            continue
        _mark(support, answer.get("supported", ()), i)
        _mark(mentions, answer.get("mentioned", ()), i)
        mentions[:, i] |= np.array([_names(entity, passages[i]) for entity in entities], bool)
        useful[i] = bool(answer.get("useful", False))
        statements[i] = len(answer.get("statements", ()))
        relevant[i] = sum(bool(statement["relevant"]) for statement in answer.get("statements", ()))
    return ClaimCheck(
        sample,
        claims,
        entities,
        support,
        mentions,
        useful,
        statements,
        relevant,
        whole={depth: _whole_share(sample, parts, depth, asker) for depth in whole},
        known=dict.fromkeys(checks, complete),
    )


def _answers(asker: _Asker, questions: Sequence[_Question], passages: int, batch: bool) -> list[Any]:
    """The answer for each passage, None where there is none."""
    if not batch:
        return [asker.answer(question) for question in questions]
    found: list[Any] = [None] * passages
    for question in questions:
        for item in (asker.answer(question) or {"passages": ()})["passages"]:
            if 1 <= item["passage"] <= passages:
                found[item["passage"] - 1] = item
    return found


def _mark(table: NDArray[np.bool_], numbers: Iterable[int], column: int) -> None:
    for number in numbers:
        if 1 <= number <= len(table):
            table[number - 1, column] = True


def _whole_share(sample: Sample, parts: Any, depth: int, asker: _Asker) -> float:
    if parts is not None and parts["claims"] and not sample.retrieved_contexts:
        return 0.0
    question = _whole_question(sample, parts, depth)
    answer = asker.answer(question) if question is not None else None
    if answer is None:
        return float("nan")
    count = len(parts["claims"])
    return len({number for number in answer["supported"] if 1 <= number <= count}) / count


def _names(entity: str, passage: str) -> bool:
    """Whether the entity's name stands in the passage as whole words, whatever the case and accents."""
    wanted, text = folded(entity), f" {folded(passage)} "
    return bool(wanted) and f" {wanted} " in text


def folded(text: str) -> str:
    """Letters and digits without case and accents, single spaces between words.

    >>> folded("Béla  Bartók's")
    'bela bartok s'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def _estimates(
    found: Sequence[ClaimCheck],
    checks: tuple[str, ...],
    depths: Sequence[int],
    whole: Sequence[int],
    bootstrap: Bootstrap,
) -> dict[str, Estimate]:
    columns: dict[str, FloatArray] = {}
    for check in checks:
        for depth in depths:
            columns[f"{MEASURES[check]}@{depth}"] = np.array([sample.figure(check, depth) for sample in found])
    for depth in whole:
        columns[f"ContextRecall(whole)@{depth}"] = np.array([sample.whole[depth] for sample in found])
    table = Figures((np.stack(list(columns.values()), axis=1),), "")
    ((low, high),) = bootstrap.intervals([table], [str(i) for i in range(len(found))])
    estimates = {}
    for i, (key, values) in enumerate(columns.items()):
        known = values[~np.isnan(values)]
        value = float(known.mean()) if len(known) else float("nan")
        reason = None if len(known) else "no sample has what the check needs"
        estimates[key] = Estimate(value, float(low[i]), float(high[i]), len(known), len(values), reason)
    return estimates
