"""Report: the estimates of each run, the figures of each query, and notes; Comparison: the differences beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from rag_selectivity.errors import InputError
from rag_selectivity.figures.stored import MOST_IN_JSON, digest_of, figures_as_data, figures_as_parquet
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.judged.token_budget import budgets_among
from rag_selectivity.measures.base import FloatArray, Measure, parse_measure
from rag_selectivity.measures.chance import BoR, Delta, Success, delta_bor
from rag_selectivity.measures.plan import at_depth, without_depth
from rag_selectivity.measures.utility import PROC, PercentPROC, diagnosis
from rag_selectivity.results.decision import Decision
from rag_selectivity.results.difference import Changes, RunDifference, difference_of
from rag_selectivity.results.plain import Plain, finite, flat, plain, plain_fields
from rag_selectivity.results.provenance import Provenance, Trust
from rag_selectivity.results.result import Result
from rag_selectivity.results.run_report import Group, OfRuns, RunReport, Slice, each_slice
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.writing import Content, is_written_into, json_text


class Diagnosis(Plain):
    """Which step lost evidence: overall, the number of queries for each answer, and the answer for each query.

    The answers are `retriever-limited`, `selection-limited`, `limited by both` and `healthy`. They follow from the
    figures alone; a decision (`rag_selectivity.advice.decide`) tests which step loses more.
    """

    overall: str | None
    counts: Mapping[str, int]
    queries: Mapping[str, str | None]


class Steps(Plain):
    """What the steps that a report proposes are written with.

    Attributes
    ----------
    grade : str
        The function that grades: that of a framework, such as `grade_dataset`, or `grade`.
    given : str
        What that function is given besides; for a tail it needs ranks below the pool.
    labels, queries, corpus : str
        Files; what is not known stands in capitals.
    files : sequence of str
        The runs: files, or NAME=FILE.
    as_commands : bool
        Whether they are commands that can be pasted, and no calls in Python.
    """

    grade: str = "grade"
    given: str = "…"
    labels: str = "STORE"
    files: Sequence[str] = ("RUN",)
    queries: str = "QUERIES"
    corpus: str = "CORPUS"
    as_commands: bool = False


class Report(OfRuns[RunReport], Result):
    """What `evaluate` returns. It can be printed, indexed, and converted to JSON or a DataFrame.

    `report["bm25", "BoR@10"]` is an `Estimate`; with a single run, `report["BoR@10"]` is enough.
    """

    schema = "rag-selectivity/report/3"

    runs: Mapping[str, RunReport]
    measures: tuple[Measure, ...]
    depths: tuple[int, ...]
    corpus_size: int | None
    scale: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The bootstrap of its intervals, also for figures that are computed from its lists later.
    bootstrap: Bootstrap | None = field(default=None, repr=False, compare=False)
    #: Measures that belong beside those shown and could not be measured, with the reason.
    absent: Mapping[str, str] = field(default_factory=dict)
    #: The judge's labels beside people's, by which the figures are calibrated (`rag_selectivity.trust.people`).
    ground: Any = field(default=None, repr=False, compare=False)
    #: What was computed of completed labels, for its decision (`rag_selectivity.trust.completions.Completed`).
    completed: Any = field(default=None, repr=False, compare=False)
    #: Where the labels come from; None if that was not looked at.
    provenance: Provenance | None = None
    #: What follows from it for the one who decides; None unless `with_decision` was called.
    decision: Decision | None = None
    #: What changed in the figures of the decision since a stored report; that file is not read back.
    changes: Changes | None = None
    #: The differences that were tested with it as one family (of `compare`).
    compared: tuple[RunDifference, ...] = field(default=(), repr=False, compare=False)
    #: The file that it was read from, which holds no lists; None for a new report.
    path: Path | None = field(default=None, repr=False, compare=False)
    #: What the steps that it proposes are written with.
    steps: Steps = field(default=Steps(), repr=False, compare=False)

    @property
    def weights(self) -> Mapping[str, Any] | None:
        """What is known of the weights of the queries, by which all figures over queries are weighted; None without.

        `source`, the number of `queries`, the `sum` of their weights, the `effective` number of queries (Kish's
        (Σw)²/Σw²), the `largest_share` of one query, and how many were `left_out` (weight 0) or `unmeasured`.
        """
        return self.settings.get("weights")

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The depths, and then the budgets of tokens that its measures name."""
        return *self.depths, *budgets_among(measure.at for measure in self.measures if measure.at is not None)

    @property
    def evaluated(self) -> int:
        """The number of queries, of the run with the most."""
        return max((run.evaluated for run in self.runs.values()), default=0)

    @property
    def trust(self) -> Trust:
        """What the labels are worth: where they come from, what may be concluded, and the cheapest next step."""
        found: Trust = import_module("rag_selectivity.advice.trust").trust_of(self)
        return found

    def key_of(self, measure: Any) -> str:
        """The name by which a figure is known; an InputError with the reason of a measure that has none."""
        parsed = parse_measure(measure)
        if parsed.name in self.absent and parsed not in self.measures:
            raise InputError(f"{parsed} was not measured: {self.absent[parsed.name]}")
        return str(parsed)

    def with_input(self, run: str, facts: Mapping[str, Any], notes: Iterable[str] = ()) -> Report:
        """The same report with further facts about a run's input, and with notes on it."""
        part = self.run(run)
        known = replace(part, input={**part.input, **facts}, notes=(*part.notes, *notes))
        return replace(self, runs={**self.runs, run: known})

    def with_decision(self, decision: Decision, changes: Changes | None = None) -> Report:
        """The same report with a decision (of `rag_selectivity.advice.decide`), and what changed in its figures.

        `rag_selectivity.compare.stored.changes_since` gives the changes since a stored report. Views show both.
        """
        return replace(self, decision=decision, changes=changes)

    def delta(self, run: str, measure: str | Measure, k1: int, k2: int) -> Delta:
        """ΔBoR of a run from depth k1 to k2 in bits: observed, predicted under sparse relevance, and flat.

        BoR, and Success with the same parameters, must have been measured at both depths.
        """
        base = parse_measure(measure)
        if not isinstance(base, BoR):
            raise InputError(f"delta is defined for BoR, not for {base.name}")
        success = Success(rel=base.rel, m=base.m)
        shares, bits = ((self[run, each @ k1].value, self[run, each @ k2].value) for each in (success, base))
        return delta_bor(shares, bits, (k1, k2), base.m)

    def diagnosis(self, run: str, depth: int | None) -> Diagnosis:
        """Which step lost evidence at a depth, overall and for each query, from PROC and %PROC.

        Both must have been measured at the depth. A depth of None stands for everything that was shown, as
        a monitor measures it. `rag_selectivity.measures.utility.diagnosis` documents the thresholds. A query
        without these figures has None.
        """
        pair = [measure if depth is None else measure @ depth for measure in (PROC(), PercentPROC())]
        pool, share = (self[run, measure] for measure in pair)
        columns = [self.run(run).per_query.get(str(measure), np.empty(0)).tolist() for measure in pair]
        verdicts = {query: diagnosis(*pair) for query, *pair in zip(self.run(run).queries, *columns, strict=True)}
        return Diagnosis(diagnosis(pool.value, share.value), dict(Counter(filter(None, verdicts.values()))), verdicts)

    def slots_per_relevant(self, run: str, *, rel: int | None = None) -> dict[int, float]:
        """K/N_p of a run at each depth: K divided by the mean number of relevant passages of a query that has one.

        Below 1 there are fewer slots than relevant passages, so no set can hold them all; far above 1 most of the K
        passages cannot be relevant. Empty if no query has a relevant passage; if labels name documents and runs their
        chunks, since K then counts chunks, and N_p documents; with people's labels, which complete the judge's without
        saying which passages are relevant.

        Parameters
        ----------
        run : str
        rel : int, optional
            The lowest grade that counts as relevant. Default: that of the scale.
        """
        part, usual = self.run(run), scale_named(self.scale).relevant_from
        if part.judged is None or self.ground is not None:
            return dict(part.slots_per_relevant) if rel in (None, usual) else {}
        mean = part.judged.mean_relevant(usual if rel is None else rel)
        return {} if mean is None else {depth: depth / mean for depth in self.depths}

    def per_query(self, run: str | None = None) -> list[dict[str, Any]]:
        """A row for each run and query: {"run", "query", measure: value or None}.

        Further columns hold the details of a figure, such as `RA-nWG.w4` and `RA-nWG@10.G_oracle`, and, if
        PROC and %PROC were measured, the diagnosis, such as `diagnosis@10`.
        """
        rows: list[dict[str, Any]] = []
        for name in [run] if run is not None else list(self.runs):
            part = self.run(name)
            columns = {key: column.tolist() for key, column in {**part.per_query, **self.query_details(name)}.items()}
            verdicts = self._diagnoses(name)
            for i, query in enumerate(part.queries):
                values = {measure: finite(column[i]) for measure, column in columns.items()}
                diagnoses = {f"diagnosis@{depth}": each.queries[query] for depth, each in verdicts.items()}
                rows.append({"run": name, "query": query, **values, **diagnoses})
        return rows

    def query_details(self, run: str) -> dict[str, FloatArray]:
        """What the figures of single queries are made of, such as `RA-nWG.w4` and `RA-nWG@10.G_oracle`.

        Empty if the report lacks the lists, as one that was read from a file does.
        """
        part = self.run(run)
        details: dict[str, FloatArray] = {}
        if part.judged is None:
            return details
        for base in without_depth(self.measures):
            depths = np.array([depth for depth in self.depths if at_depth(part.estimates, base, depth)], np.int64)
            judged = part.judged.by_group(str(base)) if base.of_groups else part.judged
            for name, values in base.details(judged, depths).items():
                if values.ndim == 1:
                    details[f"{base}.{name}"] = values
                else:
                    details.update((f"{base @ depth}.{name}", values[:, i]) for i, depth in enumerate(depths.tolist()))
        return details

    def files_of(self, target: Path, data: dict[str, Any] | None = None) -> dict[str | Path, Content]:
        """What `save` writes into which file; `data` are those of a comparison with this report."""
        data = data or self.to_dict()
        contents: dict[str | Path, Content] = {}
        if find_spec("polars") is not None and not is_written_into(target):
            for name, part in self.runs.items():
                if data["runs"][name]["per_query"] is not None and len(part.figures.queries) > MOST_IN_JSON:
                    content = figures_as_parquet(part.figures, part.estimates)
                    digest = digest_of(content)
                    beside = f"{target.stem}.{digest}.parquet"
                    data["runs"][name] |= {"per_query": None, "figures": {"file": beside, "digest": digest}}
                    contents[target.with_name(beside)] = content
        return {**contents, target: json_text(data, 2) + "\n"}

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            "schema": self.schema,
            **plain_fields(self, "runs", "measures", "depths", "provenance"),
            "trust": self.trust.to_dict(),
            "runs": {
                name: {
                    **plain_fields(part, "estimates", "coverage"),
                    "measures": plain(part.estimates),
                    "queries": {"evaluated": part.evaluated, **plain_fields(part.coverage)},
                    "caveats": plain(part.caveats),
                    "slots_per_relevant": plain(self.slots_per_relevant(name)),
                    "diagnosis": {str(k): plain_fields(each, "queries") for k, each in self._diagnoses(name).items()},
                    # What a later report is compared with: the rules, and the figures of each query.
                    "fingerprint": part.figures.rules and asdict(part.figures.rules),
                    "per_query": part.figures.rules and figures_as_data(part.figures, part.estimates),
                }
                for name, part in self.runs.items()
            },
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """One row for each run, measure and depth, as in the CSV output and the DataFrame.

        `basis` says what the value rests on, and `as_judged` is the figure with the labels as they are; `caveats` holds
        the codes of the caveats. If queries are sliced, the columns `by` and `slice` say of which queries a row is;
        both are empty for all queries, whose rows come first for each run.
        """
        sliced = any(part.slices for part in self.runs.values())
        return [
            {"run": name, **({"by": some.column, "slice": some.value} if sliced else {}), "measure": key, **flat(each)}
            for name, part in self.runs.items()
            for some in (Slice("", "", part.evaluated, part.estimates), *each_slice(part.slices))
            for key, each in some.estimates.items()
        ]

    def to_html(self, **options: Any) -> str:
        """The report as one HTML file; `rag_selectivity.render.html.to_html` documents the options.

        Raises
        ------
        InputError
            If the report was read from a file.
        """
        if self.path is not None:
            raise InputError(f"{self.path} lacks the lists and texts that a page needs: evaluate the runs again")
        return super().to_html(**options)

    def _repr_html_(self) -> str:
        return self._view("notebook")

    def _diagnoses(self, run: str) -> dict[int, Diagnosis]:
        """The diagnosis at every depth that has one."""
        estimates = self.run(run).estimates
        return {
            depth: self.diagnosis(run, depth)
            for depth in self.depths
            if at_depth(estimates, PROC(), depth) and at_depth(estimates, PercentPROC(), depth)
        }


# -- a comparison ------------------------------------------------------------------------------------------


class SliceDifferences(Group):
    """The differences between runs and the baseline within a slice; `p_adjusted` is over all slices."""

    rows: tuple[RunDifference, ...]

    def __getitem__(self, key: tuple[str, str]) -> RunDifference:
        return difference_of(self.rows, *key)


class Comparison(Result):
    """What `compare` returns: `comparison["hybrid", "BoR@10"]` is a RunDifference; `report` holds the runs' figures."""

    schema = Report.schema

    baseline: str
    rows: tuple[RunDifference, ...]
    report: Report = field(repr=False)
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    #: The differences within slices of the queries, by column and value.
    slices: Mapping[str, Mapping[str, SliceDifferences]] = field(default_factory=dict)

    def __getitem__(self, key: tuple[str, str]) -> RunDifference:
        return difference_of(self.rows, *key)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON: that of the report, as which it is read, and the differences beside it."""
        compared = {"settings": plain({**self.settings, **self.report.settings}), "differences": plain(self.rows)}
        return {**self.report.to_dict(), **plain_fields(self, "rows"), **compared}

    def files_of(self, target: Path) -> dict[str | Path, Content]:
        """What `save` writes into which file."""
        return self.report.files_of(target, self.to_dict())

    def table(self) -> Iterable[dict[str, Any]]:
        """One flat row for each difference, as in the CSV output and the DataFrame.

        If queries are sliced, the columns `by` and `slice` say of which queries a row is; both are empty for all.
        """
        of_slices = [row for by_value in self.slices.values() for part in by_value.values() for row in part.rows]
        for row in (*self.rows, *of_slices):
            by = dict(zip(("by", "slice"), row.by or ("", ""), strict=True)) if self.slices else {}
            yield {**by, **flat(row)}
