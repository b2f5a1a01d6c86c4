"""Join runs with their judgments."""

import warnings
from collections.abc import Iterable
from typing import Any

from rag_selectivity.judged.judged_run import JudgedRun
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.run import Run
from rag_selectivity.judged.terms import Terms
from rag_selectivity.tables.forms import IdForm
from rag_selectivity.tables.grades import Scale


def join(
    qrels: Qrels,
    run: Run | Iterable[Run],
    *,
    pool: Run | Iterable[Run] | None = None,
    controls: Qrels | None = None,
    corpus_size: Any = None,
    corpus: Iterable[Any] | None = None,
    passages_of: Any = None,
    scale: str | Scale | None = None,
    policy: str | Policy | None = None,
    name: str = "run",
    ids: str | IdForm | None = None,
) -> JudgedRun:
    """Join a run with its judgments.

    Parameters
    ----------
    qrels : Qrels
    run : Run, or iterable of Runs over different queries
        An iterable lets a file of any length be streamed.
    pool : Run or iterable of Runs, optional
        The candidates before reranking or selection, which include the run's passages.
    controls : Qrels, optional
        Judgments of passages drawn at random from the corpus, separately for each query, by the judge of the labels.
        Judgments whose origin is a control are controls without being given here.
    corpus_size : int, {query: int}, DataFrame or None
        N, for all queries or for each.
    corpus : iterable of passage ids, optional
        The corpus: gives N. Judgments of passages that it lacks are left out.
    passages_of : {document: number of its passages}, DataFrame or path, optional
        For judged documents and retrieved passages (chunks): qrels and lists name documents, and each slot of a list
        is a passage. N and the random draw then count passages. Without a corpus size, N is the sum of all numbers.
    scale : {"trec", "utility"}, optional
        Not needed for labels that are 0 or 1, or that name their scale, as a label store does.
    policy : Policy or its name
    name : str
        The name of the run in messages.
    ids : str, optional
        The form that all ids are brought into, as in `evaluate`.

    Returns
    -------
    JudgedRun

    Raises
    ------
    InputError
        If an argument is wrong, or the policy refuses the input. Whether labels and run have the same ids is decided
        where a report is made.
    """
    terms = Terms.of(
        Qrels.of(qrels),
        controls=None if controls is None else Qrels.of(controls),
        corpus_size=corpus_size,
        corpus=corpus,
        passages_of=passages_of,
        scale=scale,
        policy=resolve_policy(policy),
        form=IdForm.of(ids),
    )
    for doubt in terms.doubts:
        warnings.warn(doubt, stacklevel=2)
    return JudgedRun.of(terms, run, pool, name)
