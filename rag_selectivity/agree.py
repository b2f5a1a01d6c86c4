"""`agree`: how far to trust a judge, what its labels do to the answer, and the answer corrected by human labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError, examples
from rag_selectivity.evaluation import join, measure_all, named_runs, report_of_measured
from rag_selectivity.files.opening import first_bytes
from rag_selectivity.grading.store import Store, is_store, label_rows
from rag_selectivity.judged import JudgedRun
from rag_selectivity.measures import Measure
from rag_selectivity.measures.base import MEAN, FloatArray
from rag_selectivity.qrels import Qrels
from rag_selectivity.report.report import finite
from rag_selectivity.report.views import Views
from rag_selectivity.scales import Scale, scale_named
from rag_selectivity.statistics.agreement import Agreement, agreement
from rag_selectivity.statistics.bootstrap import Bootstrap
from rag_selectivity.statistics.prediction_powered import PredictionPowered, prediction_powered_mean

SCHEMA = "rag-selectivity/agreement/1"
DEFAULT_DEPTHS = (5, 10)


@dataclass(frozen=True, slots=True)
class UnderBoth:
    """A run's figure under human and under judge labels, and corrected by both where it is a mean over queries."""

    run: str
    measure: Measure
    human: float
    judge: float
    corrected: PredictionPowered | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "run": self.run,
            "measure": str(self.measure),
            "human": finite(self.human),
            "judge": finite(self.judge),
            "corrected": self.corrected.to_dict() if self.corrected is not None else None,
        }


@dataclass(frozen=True)
class JudgeReport(Views):
    """What `agree` returns.

    Attributes
    ----------
    agreement : Agreement
        Over the pairs that both sides graded.
    itself : Agreement or None
        A judge's first grades beside its second ones, where a store holds several samples.
    corrected : {"mean_grade" | "share_relevant": PredictionPowered}
        Of all graded pairs, as humans would have it; empty where the judge graded no others than the human.
    figures : tuple of UnderBoth
    tau : {measure: float}
        Kendall's tau of the runs' order under human and under judge labels.
    """

    agreement: Agreement
    itself: Agreement | None
    corrected: Mapping[str, PredictionPowered]
    figures: tuple[UnderBoth, ...]
    tau: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON: the agreement's figures at the top."""
        return {
            "schema": SCHEMA,
            **self.agreement.to_dict(),
            "itself": self.itself.to_dict() if self.itself is not None else None,
            "corrected": {name: mean.to_dict() for name, mean in self.corrected.items()},
            "figures": [row.to_dict() for row in self.figures],
            "tau": {name: finite(value) for name, value in self.tau.items()},
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row an agreement figure, as the CSV view has it."""
        data = self.agreement.to_dict()
        names = [name for name, value in data.items() if isinstance(value, dict) and "value" in value]
        return [{"figure": name, **{key: data[name][key] for key in ("value", "low", "high")}} for name in names]

    def to_text(self, *, ruled: bool = True) -> str:
        """Tables for a terminal."""
        from rag_selectivity.report.tables import agreement_text

        return agreement_text(self, ruled=ruled)

    def to_markdown(self) -> str:
        """Tables for a pull request."""
        from rag_selectivity.report.tables import agreement_markdown

        return agreement_markdown(self)


def agree(
    human: Any,
    labels: Any,
    *,
    judges: Sequence[str] | None = None,
    judge_rule: str | None = None,
    grade_map: str | Mapping[int, int] | None = None,
    labels_grade_map: str | Mapping[int, int] | None = None,
    runs: Any = None,
    corpus_size: Any = None,
    measures: Sequence[str | Measure] | None = None,
    depths: Sequence[int] = DEFAULT_DEPTHS,
    scale: str | Scale = "utility",
    bootstrap: Bootstrap = Bootstrap(),
) -> JudgeReport:
    """Compare a judge's labels with human ones.

    Parameters
    ----------
    human, labels : qrels, or the path of a label store
        Of a store, its human labels are the one side and its judges' the other.
    judges, judge_rule
        Whose labels of a store count, as in `Qrels.read`.
    grade_map, labels_grade_map : {old: new} or str, optional
        Carry the human's, or the judge's, grades over.
    runs : {name: run}, optional
        Systems to measure under both sets of labels.
    corpus_size, measures, depths, scale
        For the runs, as in `evaluate`. Default measures: BoR (with a corpus size), and on the utility scale
        RA-nWG and Harm.
    bootstrap : Bootstrap
        Queries are drawn whole.

    Returns
    -------
    JudgeReport

    Raises
    ------
    InputError
        If no pair was graded by both.
    """
    chosen = scale_named(scale)
    by_hand = _side(human, None, None, humans=True).regraded(grade_map)
    by_judge = _side(labels, judges, judge_rule, humans=False).regraded(labels_grade_map)
    pairs = [(q, p, g, by_judge[q].get(p)) for q in by_hand if q in by_judge for p, g in by_hand[q].items()]
    shared = [(q, one, other) for q, _, one, other in pairs if other is not None]
    if not shared:
        raise InputError(
            f"no pair was graded by both: the human labels have queries {examples(by_hand)}, "
            f"the judge's {examples(by_judge)}; do both use the same ids?"
        )
    names, first, second = (list(column) for column in zip(*shared, strict=True))
    found = agreement(first, second, names, bootstrap=bootstrap)
    figures = _under_both(by_hand, by_judge, runs, corpus_size, measures, depths, chosen, bootstrap.level)
    return JudgeReport(
        agreement=found,
        itself=_with_itself(labels, judges, bootstrap),
        corrected=_corrected(by_hand, by_judge, chosen, bootstrap.level),
        figures=figures,
        tau=_taus(figures),
    )


def _side(source: Any, judges: Sequence[str] | None, rule: str | None, *, humans: bool) -> Qrels:
    if isinstance(source, (str, Path)) and _is_store(source):
        with Store(source, create=False) as store:
            if humans:
                rows: Iterable[tuple[str, str, int]] = list(label_rows(store, judges=()))
            else:
                rows = list(label_rows(store, judges=judges, rule=rule, humans=False, as_given=True))
        qrels = Qrels.from_records(rows, source=str(source))
        if not len(qrels):
            raise InputError(f"{source}: the label store has no {'human' if humans else 'judge'} labels")
        return qrels
    if judges or rule:
        raise InputError("--judge and --judge-rule choose among the judges of a label store, and the labels are none")
    return Qrels.of(source)


def _is_store(path: str | Path) -> bool:
    file = Path(path)
    return not file.is_dir() and is_store(first_bytes(file))


def _with_itself(labels: Any, judges: Sequence[str] | None, bootstrap: Bootstrap) -> Agreement | None:
    """Each judge's first sample beside its second."""
    if not (isinstance(labels, (str, Path)) and _is_store(labels)):
        return None
    with Store(labels, create=False) as store:
        twice = [
            (q, grades[0], grades[1])
            for q, _, _, grades in store.judge_grades(judges, as_given=True)
            if len(grades) > 1
        ]
    if not twice:
        return None
    names, first, second = (list(column) for column in zip(*twice, strict=True))
    return agreement(first, second, names, bootstrap=bootstrap)


def _corrected(by_hand: Qrels, by_judge: Qrels, scale: Scale, level: float) -> dict[str, PredictionPowered]:
    """Means over all graded pairs, where the judge graded some that no human did."""
    rows: dict[tuple[str, str], list[float]] = {}
    for place, qrels in enumerate((by_hand, by_judge)):
        for query in qrels:
            for passage, grade in qrels[query].items():
                rows.setdefault((query, passage), [np.nan, np.nan])[place] = grade
    table = np.array(list(rows.values()), np.float64)
    clusters = [query for query, _ in rows]
    alone = np.isnan(table[:, 0]) & ~np.isnan(table[:, 1])
    both = np.flatnonzero(~np.isnan(table).any(axis=1)).tolist()
    if not alone.any() or len({clusters[i] for i in both}) < 2:
        return {}
    relevant = np.where(np.isnan(table), np.nan, table >= scale.relevant_from)
    return {
        "mean_grade": prediction_powered_mean(table[:, 0], table[:, 1], clusters, level=level),
        "share_relevant": prediction_powered_mean(relevant[:, 0], relevant[:, 1], clusters, level=level),
    }


def _under_both(
    by_hand: Qrels,
    by_judge: Qrels,
    runs: Any,
    corpus_size: Any,
    measures: Sequence[str | Measure] | None,
    depths: Sequence[int],
    scale: Scale,
    level: float,
) -> tuple[UnderBoth, ...]:
    if runs is None:
        return ()
    if measures is None:
        with_size = ("BoR",) if corpus_size is not None else ()
        measures = (*with_size, *(("RA-nWG", "Harm") if scale.name == "utility" else ("P",)))
    named = named_runs(runs)
    sides = [join(qrels, named, corpus_size=corpus_size, scale=scale).judged for qrels in (by_hand, by_judge)]
    measured = [measure_all(judged, measures, depths) for judged in sides]
    reports = [report_of_measured(judged, m, None) for judged, m in zip(sides, measured, strict=True)]
    rows = []
    for name in named:
        for number, (measure, at) in enumerate(measured[0].plan):
            if measure.name == "Judged":
                continue
            outcomes = [m.outcomes[name][number] for m in measured]
            for column, depth in enumerate(at.tolist()):
                one, other = (report[name, measure @ depth].value for report in reports)
                corrected = None
                if outcomes[0].aggregate is MEAN:
                    parts = [outcome.parts[0][:, column] for outcome in outcomes]
                    corrected = _corrected_mean([side[name] for side in sides], parts, level)
                rows.append(UnderBoth(name, measure @ depth, one, other, corrected))
    return tuple(rows)


def _corrected_mean(sides: Sequence[JudgedRun], values: Sequence[FloatArray], level: float) -> PredictionPowered | None:
    """Query by query figures of both sides, joined by query."""
    known = [dict(zip(side.queries, column.tolist(), strict=True)) for side, column in zip(sides, values, strict=True)]
    queries = list(dict.fromkeys([*known[0], *known[1]]))
    human, judge = (np.array([side.get(query, np.nan) for query in queries], np.float64) for side in known)
    if (~np.isnan(human) & ~np.isnan(judge)).sum() < 2:
        return None
    return prediction_powered_mean(human, judge, queries, level=level)


def _taus(figures: Sequence[UnderBoth]) -> dict[str, float]:
    from scipy.stats import kendalltau

    by_measure: dict[str, list[UnderBoth]] = {}
    for row in figures:
        by_measure.setdefault(str(row.measure), []).append(row)
    return {
        measure: float(kendalltau([row.human for row in rows], [row.judge for row in rows]).statistic)
        for measure, rows in by_measure.items()
        if len(rows) > 1
    }
