"""The figures of queries that a host gives one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.indexes import given_size
from rag_selectivity.measures import Measure, parse_measure
from rag_selectivity.measures.of_query import QueryFigure, figures_of_query, measure_with_depth, per_query_measure
from rag_selectivity.results.labels import Labels
from rag_selectivity.tables.grades import unknown_scale
from rag_selectivity.tables.identity import document_ids
from rag_selectivity.tables.small import passage_counts_of


class QueryScorer:
    """The figures of one query after the other; measures, labels and N are given once.

    Parameters
    ----------
    measures : str or Measure
        With their depths, `"Harm@10"`.
    labels : as in `Labels.of`, optional
    corpus_size, passages_of, scale, grade_map
        As in `rag_selectivity.evaluate`.
    identity : str, optional
        The id by which the labels know a document, as in `document_ids`.
    place : str
        Where the user of the host gives the ids of what was retrieved, for errors.

    Raises
    ------
    InputError
        If a measure has no depth or needs another scale, or the labels cannot be read.

    Examples
    --------
    >>> scorer = QueryScorer("Success@1", "RA-nWG@1", labels={"who?": {"d1": 5}}, scale="utility")
    >>> [figure.score for figure in scorer.figures(["d9", "d1"], "who?")]
    [0.0, 0.0]
    >>> scorer.figures(["d9"], "when?")[0].reason
    'nobody judged this query'
    """

    def __init__(
        self,
        *measures: str | Measure,
        labels: Any = None,
        corpus_size: Any = None,
        passages_of: Any = None,
        scale: str | None = None,
        grade_map: Any = None,
        identity: str | None = None,
        place: str = "the list of passages",
    ) -> None:
        self.measures = tuple(dict.fromkeys(map(measure_with_depth, measures)))
        self.labels = Labels.of(labels, grade_map=grade_map, scale=scale, measures=self.measures)
        self.corpus_size = given_size(corpus_size)
        self.passages_of = passage_counts_of(passages_of)
        self.identity, self.place = identity, place
        self._of_row = {"grade_map": grade_map, "scale": scale if labels is None else self.labels.scale}
        for measure in self.measures:
            self.labels.require_for(measure)

    def figures(
        self,
        passages: Sequence[Any] | None,
        *names: str | None,
        relevant: Mapping[Any, Any] | Iterable[Any] | None = None,
    ) -> tuple[QueryFigure, ...]:
        """The figures of a query, in the order of the measures, with what they were made of.

        Parameters
        ----------
        passages : sequence
            Ids or documents in rank order, as in `document_ids`.
        names : str or None
            What the query may go by (its id, its text); the first that the labels know counts.
        relevant : {passage: grade}, or passage ids, optional
            Labels that the host brought along, for a query that the labels do not know. Without a scale, grades must
            be 0 and 1 and not all 1: a query with nothing but junk on grades 1 to 5 has the same.

        Raises
        ------
        InputError
            If there is no list of passages, or the scale of `relevant` is not known; and as `document_ids` and
            `evaluate_query`.
        """
        if not isinstance(passages, Sequence) or isinstance(passages, str):
            query = next((repr(name) for name in names if name is not None), "the row")
            raise InputError(
                f"{query} holds no retrieval: a list is needed, got {type(passages).__name__}; give ids in {self.place}"
            )
        expected = None if isinstance(relevant, Mapping) else relevant
        grades, scale = self.labels.of_query(*names, relevant=expected), self.labels.scale
        if grades is None and isinstance(relevant, Mapping):
            of_row = Labels.of({"row": relevant}, **self._of_row)
            grades, scale = of_row.of_query("row"), of_row.scale
            says_truth = any(grade is True for grade in relevant.values())
            if of_row.levels == (1,) and self._of_row == {"grade_map": None, "scale": None} and not says_truth:
                raise unknown_scale([1], "the labels of the row")
        ids = document_ids(passages, grades, self.identity, place=self.place)
        options: dict[str, Any] = {"corpus_size": self.corpus_size, "passages_of": self.passages_of, "scale": scale}
        return figures_of_query(self.measures, grades, ids, details=True, levels=self.labels.levels, **options)


def kept_measures(*measures: str | Measure) -> tuple[Measure, ...]:
    """The measures of which a host keeps figures by query, so that those given can be made of them.

    These are the given ones, with Success and RandomSuccess in the place of BoR, which is a ratio of means.

    >>> kept_measures("BoR@10", "Harm@5")
    (Success@10, RandomSuccess@10, Harm@5)

    Raises
    ------
    InputError
        If a measure has no depth, or is another ratio of means.
    """
    texts = [str(parse_measure(measure)) for measure in measures]
    pairs = [
        [text.replace("BoR", name, 1) for name in ("Success", "RandomSuccess")]
        if parse_measure(text).name == "BoR"
        else [text]
        for text in texts
    ]
    return tuple(dict.fromkeys(per_query_measure(text) for pair in pairs for text in pair))
