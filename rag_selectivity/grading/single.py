"""What adapters share where a judge is asked: grades and claim checks of one query, and labels for many lists."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from rag_selectivity.errors import InputError, examples, warn
from rag_selectivity.grading.claims import acheck_claims
from rag_selectivity.grading.gate import Gate
from rag_selectivity.grading.grade import agrade, settings_of
from rag_selectivity.grading.judge import judge_of
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.origins import labels_in, without_outside_by_people
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC, Rubric
from rag_selectivity.grading.runner import blocking
from rag_selectivity.grading.store import Draw, Origin, Store
from rag_selectivity.indexes.texts import corpus_texts
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.results.claims import CHECKS, MEASURES, ClaimCheck
from rag_selectivity.tables.cells import check_whole, shown
from rag_selectivity.tables.files import is_path
from rag_selectivity.tables.ids import text_id
from rag_selectivity.wording import counted

__all__ = ["ClaimCheck", "ClaimFigure", "GradedPassage", "SingleQuery", "blocking", "claim_measure_name", "label_lists"]


@dataclass(frozen=True, slots=True)
class GradedPassage:
    """A passage with its grade and the judge's reason, or the error that left it without a grade."""

    id: str
    grade: int | None
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """The figure of one claim check for one query.

    Attributes
    ----------
    name : str
        The measure with its depth, `ContextRecall@10`.
    value : float
        0 to 1, higher is better; NaN if it is undefined.
    reason : str or None
        Why the value is NaN.
    check : ClaimCheck or None
        Which passage supports which claim; None if nothing was asked.
    """

    name: str
    value: float
    reason: str | None
    check: ClaimCheck | None


def claim_measure_name(check: str, k: int) -> str:
    """The name of the measure that a check gives at a depth.

    >>> claim_measure_name("recall", 10)
    'ContextRecall@10'

    Raises
    ------
    InputError
        If the depth is not a whole number ≥ 1.
    """
    check_whole("k", k)
    return f"{MEASURES[check]}@{k}"


class SingleQuery:
    """Grades and claim checks of one query at a time; nothing that the store holds is asked again.

    Several evaluators may ask about the same query at once: the first one asks the judge, and the others read its
    answers from the store.

    Parameters
    ----------
    judge : Judge or async function
    store : str or Path
    rubric : Rubric or path
    limits : Limits
    """

    def __init__(
        self, judge: Any, store: str | Path, *, rubric: Rubric | str | Path = DEFAULT_RUBRIC, limits: Limits = Limits()
    ) -> None:
        self.judge = judge_of(judge)
        if not is_path(store):
            raise InputError(f"store must be the path of a label store, got {shown(store)}")
        self.store = Path(store)
        self.rubric = Rubric.of(rubric)
        self._gate = Gate(limits)

    async def grades(self, query: str, texts: Sequence[str]) -> list[GradedPassage]:
        """A grade for each text, in order; in the store, the id of a passage is a hash of its text.

        Raises
        ------
        GradingError
            If the judge cannot be used at all.
        """
        by_id = {text_id(text): text for text in texts}
        async with self._turn(query):
            await agrade(
                {query: query},
                by_id,
                {query: list(by_id)},
                store=self.store,
                judge=self.judge,
                rubric=self.rubric,
                gate=self._gate,
                progress=False,
            )
            with Store(self.store) as store:
                settings = store.settings_id(settings_of(self.judge, self.rubric))
                by_passage = {row[0]: GradedPassage(*row) for row in store.labels_of_query(query, settings)}
        return [by_passage.get(id_, GradedPassage(id_, None, error="not graded")) for id_ in map(text_id, texts)]

    async def claim_figure(
        self, check: str, query: str, passages: Sequence[str], reference: str | None, *, k: int | None = None
    ) -> ClaimFigure:
        """The figure of a check, and the reason if it is NaN. All checks of a query ask the same questions once.

        Parameters
        ----------
        check : {"precision", "recall", "entities", "relevance"}
        query : str
        passages : list or tuple of str
            Texts in rank order.
        reference : str or None
            The reference answer; only relevance does without it.
        k : int, optional
            Default: all passages.

        Raises
        ------
        InputError, GradingError
            If the judge cannot be used, or `k` is not a whole number ≥ 1.
        """
        depth = len(passages) if k is None else k
        name = claim_measure_name(check, depth)
        if not reference and check != "relevance":
            return ClaimFigure(name, math.nan, f"{MEASURES[check]} needs a reference answer: reference=…", None)
        sample = {"user_input": query, "retrieved_contexts": passages, "reference": reference}
        checks = CHECKS if reference else ("relevance",)
        async with self._turn(str(sample)):
            report = await acheck_claims(
                [sample], store=self.store, judge=self.judge, checks=checks, depths=[depth], gate=self._gate
            )
        value = report.samples[0].value(name)
        reason = "some of the judge's calls failed, or there was nothing to check" if math.isnan(value) else None
        return ClaimFigure(name, value, reason, report.samples[0])

    @asynccontextmanager
    async def _turn(self, subject: str) -> AsyncIterator[None]:
        of_loop = _locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        async with of_loop.setdefault((str(self.store), self.judge.name, subject), asyncio.Lock()):
            self._gate.reopen()
            yield


#: Of each event loop; a lock lives as long as somebody holds it or waits for it.
_locks: WeakKeyDictionary[Any, WeakValueDictionary[tuple[str, str, str], asyncio.Lock]] = WeakKeyDictionary()


async def label_lists(
    queries: Mapping[str, str],
    passages: Mapping[str, str],
    lists: Mapping[str, Sequence[str]] | Sequence[Mapping[str, Sequence[str]]],
    *,
    store: str | Path,
    judge: Any,
    corpus: Any = None,
    identity: str | None = None,
    controls: int = 0,
    **options: Any,
) -> Qrels:
    """Have a judge grade every passage of the lists, and return all that it has graded of these queries by now.

    The store may hold grades of earlier calls, for the lists of other runs: they count too, so that several runs are
    measured by the same labels, whichever call returned them.

    Parameters
    ----------
    queries, passages : {id: text}
        Texts of the queries and of the passages that were retrieved.
    lists : {query id: [passage id, …]}, or a sequence of them
        What was retrieved, in rank order; several retrievers have a mapping each.
    corpus, identity
        As in `rag_selectivity.indexes.texts.corpus_texts`: all passages, of which controls are drawn. It is read only
        for controls, and for passages of the lists without a text.
    store, judge, controls, options
        As in `rag_selectivity.grade`.

    Returns
    -------
    Qrels
        The labels that the store holds of these queries, by this judge with this rubric and by people, with their
        origins. Pairs that failed are left out, with a SelectivityWarning.

    Raises
    ------
    InputError, GradingError
        If a text is missing, controls are asked for without a corpus, or the judge cannot be used at all.
    """
    judge = judge_of(judge)
    several = [lists] if isinstance(lists, Mapping) else list(lists)
    pools = [{query: list(dict.fromkeys(ids)) for query, ids in each.items() if ids} for each in several]
    listed = {(query, passage) for pool in pools for query, ids in pool.items() for passage in ids}
    if not listed:
        why = "is the index empty, or its filter too narrow? (how-to: empty-retrievals)"
        raise InputError(f"nothing was retrieved for any of the {len(queries):,} queries: {why}")
    texts = _texts(passages, {passage for _, passage in listed}, corpus, identity, controls)
    runs = [Run.of(pool) for pool in pools if pool]
    done = await agrade(queries, texts, runs, store=store, judge=judge, controls=controls, **options)
    if done.failed or done.left or done.earlier_failures:
        warn(str(done), "pairs-not-graded", stacklevel=3)
    asked = {query: query for each in several for query in each}
    how = {name: options[name] for name in ("extras", "batch", "seed") if name in options}
    with Store(store) as kept:
        kept.put_origins((query, "", Origin(Draw("pool"))) for query in asked.keys() - {query for query, _ in listed})
        name = kept.judge_named(settings_of(judge, Rubric.of(options.get("rubric", DEFAULT_RUBRIC)), **how))
        labels = labels_in(kept, [name], people_first=True, queries=asked)
    return without_outside_by_people(labels.under(asked))


def _texts(
    passages: Mapping[str, str], listed: set[str], corpus: Any, identity: str | None, controls: int
) -> Mapping[str, str]:
    """Texts of the lists, and of the corpus if it is needed."""
    if controls and corpus is None:
        give = "corpus=index (an index, a vector store) or corpus={id: text}"
        raise InputError(f"controls are drawn from all passages that could have been retrieved: give {give}")
    if corpus is None or not (controls or listed - passages.keys()):
        return passages
    known = corpus_texts(corpus, identity, listed)
    unknown = sorted(listed - known.keys())
    if unknown and controls:
        warn(
            f"corpus: {counted(len(unknown), 'retrieved passage is', 'retrieved passages are')} not in it, such as "
            f"{examples(unknown)}: draw controls from the corpus that was searched",
            "outside-corpus",
            stacklevel=3,
        )
    return {**known, **passages}
