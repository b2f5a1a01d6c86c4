"""The kinds of input that are tables beside labels and runs: weights, slices, costs, groups, lengths, scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from rag_selectivity.answers.given import answers_given
from rag_selectivity.answers.references import read_references
from rag_selectivity.cli.answers import _text_of as instructions_of
from rag_selectivity.cli.calibrate_alpha import calibrate_alpha
from rag_selectivity.cli.deciding import known_costs
from rag_selectivity.cli.inputs import clusters_of, corpus_size_of
from rag_selectivity.decision import decide
from rag_selectivity.io.groups import near_duplicates
from rag_selectivity.io.lengths import counted_tokens, estimated_tokens
from rag_selectivity.report import _quality as quality_of
from tests.fuzz.changes import changed_value
from tests.fuzz.kind import FEW, Kind, changed_one, quietly, written
from tests.fuzz.seeds import LABELS, RUN, TEXTS, rows_of, seeds

RUNS = {"a": RUN, "b": LABELS}
MEASURES = ["Success@2", "RA-nWG@2"]


def evaluated(**options: Any) -> rs.Report:
    """A report on two runs with few resamples, and as text."""
    given = {"measures": MEASURES, "depths": [2], "scale": "utility", "corpus_size": 100, "bootstrap": FEW}
    report = rs.evaluate(LABELS, RUNS, **{**given, **options})
    report.to_text()
    return report


def of_option(name: str, table: str, **options: Any) -> Callable[[Random, Path], object]:
    """An option of `evaluate` or `compare`: a changed table, or changed rows, or a changed mapping."""

    def run(random: Random, folder: Path) -> object:
        if random.random() < 0.5:
            suffix = random.choice((".csv", ".jsonl", ".csv.gz"))
            given: Any = written(random, folder, f"{table}{suffix}")
        else:
            rows = rows_of(table)
            key, *values = rows[0]
            mapping = {row[key]: row[values[0]] for row in rows}
            given = changed_value(random, random.choice((rows, mapping)))
        if random.random() < {"weights": 0.2, "by": 0.03}.get(name, 0.0):
            compared: dict[str, Any] = {"measures": ["RA-nWG@2"], "depths": [], "scale": "utility", "bootstrap": FEW}
            return rs.compare(LABELS, RUNS, **compared, **{name: given}).to_text()
        return evaluated(**{**options, name: given})

    return run


def costs(random: Random, folder: Path) -> object:
    """A decision by changed costs: a table, a trace, rows or a mapping."""
    report = _costed()
    tokens = None
    if random.random() < 0.5:
        given: Any = written(random, folder, random.choice(("costs.csv", "costs.jsonl")))
    elif random.random() < 0.3:
        given, tokens = None, changed_value(random, dict.fromkeys(TEXTS, 3))
    else:
        by_query = {row["query_id"]: {"tokens": row["tokens"]} for row in rows_of("costs")}
        given = changed_value(random, random.choice((rows_of("costs"), {"a": by_query, "b": by_query})))
    known = known_costs(report, RUNS, given, tokens, None)
    if random.random() < 0.3:
        return decide(report, k=2, costs=known, **(changed_one(random, DECIDE) if random.random() < 0.5 else {}))
    return known


DECIDE = {"cost_measure": "RA-nWG", "cost_depths": [1], "max_loss": 0.1}
_REPORTS: list[rs.Report] = []


def _costed() -> rs.Report:
    """The report whose runs the costs are of, made once."""
    if not _REPORTS:
        _REPORTS.append(evaluated())
    return _REPORTS[0]


def small(random: Random, folder: Path) -> object:
    """A changed table of clusters or of corpus sizes, a file of instructions, or scores beside the page."""
    reader, name = random.choice(
        (
            (lambda path: evaluated(bootstrap=rs.Bootstrap(20, clusters=clusters_of(path))), "clusters.csv"),
            (lambda path: evaluated(corpus_size=corpus_size_of(str(path))), "sizes.csv"),
            (instructions_of, "questions.txt"),
            (quality_of, "scores.csv"),
        )
    )
    return reader(written(random, folder, name))


def texts(random: Random, folder: Path) -> object:
    """Lengths and near-duplicates of a changed corpus or of changed values."""
    from_file = random.random() < 0.6
    given = written(random, folder, "corpus.jsonl") if from_file else changed_value(random, TEXTS)
    match random.randrange(3):
        case 0:
            return counted_tokens(given, random.choice((str.split, len, str.upper)))
        case 1:
            return estimated_tokens(given)
        case _:
            return near_duplicates(
                given, **changed_one(random, {"threshold": 0.5, "words": 2}) if not from_file else {}
            )


# -- scores of answers ---------------------------------------------------------------------------------------


def scores(random: Random, folder: Path) -> object:
    """Changed scores of answers: swept, validated, or those by which alpha is chosen."""
    path = written(random, folder, random.choice(("scores.csv", "scores.jsonl")))
    given: Any = path if random.random() < 0.6 else changed_value(random, rows_of("scores"))
    match random.randrange(4):
        case 0:
            found: Any = rs.sweep(LABELS, {"a": RUN}, scale="utility", scores=given, max_depth=3, bootstrap=FEW)
        case 1:
            closed = written(random, folder, "closed.csv") if random.random() < 0.3 else None
            found = rs.validate(_costed(), given, closed_book=closed, bootstrap=FEW)
        case 2:
            options = {"score_range": (0, 1), "borders": (1.0,), "folds": 2, "column": "score", "ids": "strip"}
            found = rs.validate(_costed(), rows_of("scores"), **changed_one(random, options), bootstrap=FEW)
        case _:
            for name in ("labels.trec", "run.trec"):
                (folder / name).write_bytes(seeds()[name])
            files = (folder / "labels.trec", f"a={folder / 'run.trec'}", path)
            options = {"scale": "utility", "measure": "F@2", "folds": 2, "resamples": 20}
            return quietly(calibrate_alpha, *files, **options, output=folder / "out.json")
    found.to_text()
    found.save(folder / "out.json")
    return found


def given_answers(random: Random, folder: Path) -> object:
    """Changed scores of answers, with controls, as the command `answers --given` reads them."""
    from_file = random.random() < 0.6
    source: Any = written(random, folder, random.choice(("answered.csv", "answered.jsonl"))) if from_file else None
    options: dict[str, Any] = {
        "column": "score",
        "ends": (0.0, 1.0),
        "correct_from": 0.5,
        "run": {"a": RUN},
        "baseline": "a",
    }
    if from_file:
        options = {name: options[name] for name in random.sample(list(options), 2)}
    else:
        options = changed_one(random, {"scores": rows_of("answered"), **options})
        source = options.pop("scores")
    found = answers_given(source, **options, bootstrap=FEW)
    found.to_text()
    found.save(folder / "out.json")
    return found


def references(random: Random, folder: Path) -> object:
    """Right answers: a changed table, changed records or a changed mapping."""
    if random.random() < 0.6:
        return read_references(written(random, folder, random.choice(("references.csv", "references.jsonl"))))
    rows = rows_of("references")
    mapping = {row["query_id"]: row["reference"] for row in rows}
    return read_references(changed_value(random, random.choice((rows, mapping))))


KINDS: tuple[Kind, ...] = (
    Kind("weights", of_option("weights", "weights")),
    Kind("slices", of_option("by", "slices", measures=["RA-nWG@2"], depths=[], bootstrap=None)),
    Kind("groups", of_option("groups", "groups", measures=["RA-nWG(distinct=true)@2", "Redundancy@2"])),
    Kind("token lengths", of_option("tokens", "lengths", measures=["RA-nWG@4tok", "Success@9tok"], depths=[])),
    Kind(
        "texts for slices", of_option("queries", "asked", by="length", measures=["RA-nWG@2"], depths=[], bootstrap=None)
    ),
    Kind("costs", costs),
    Kind("small tables", small),
    Kind("texts", texts),
    Kind("scores", scores),
    Kind("given answers", given_answers),
    Kind("references", references),
)
