"""Small real inputs of every kind of file, made by the package's own writers."""

from __future__ import annotations

import gzip
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import rag_selectivity as rs
from rag_selectivity.grading.annotation.answers import Answer, write_answers
from rag_selectivity.grading.annotation.task import AnnotationTask, Item
from rag_selectivity.grading.exchange import export_labels
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Draw, Store
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace_writer import TraceWriter
from rag_selectivity.online import RecordLog, interleave, join_records
from rag_selectivity.tables.writing import write_rows
from tests.test_store import put

QUERIES = [f"q{number}" for number in range(1, 6)]
LABELS = {query: {"d1": 5, "d2": 1 + number % 5, "d3": 1} for number, query in enumerate(QUERIES)}
RUN = {query: ["d2", "d1", "d4"] if number % 2 else ["d1", "d3"] for number, query in enumerate(QUERIES)}
TEXTS = {each: f"the text of {each}" for each in (*QUERIES, "d1", "d2", "d3", "d4")}
TABLES = (
    "weights",
    "slices",
    "groups",
    "lengths",
    "asked",
    "costs",
    "clusters",
    "sizes",
    "scores",
    "closed",
    "answered",
    "references",
)


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


SPANS = [
    {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "retrieve",
        "startTimeUnixNano": str(number),
        "endTimeUnixNano": str(number + 5),
        "attributes": [
            attribute("openinference.span.kind", stringValue="RETRIEVER"),
            attribute("input.value", stringValue=query),
            attribute("metadata", stringValue=json.dumps({"query_id": query})),
            attribute("retrieval.documents.0.document.id", stringValue="d1"),
            attribute("retrieval.documents.0.document.score", doubleValue=0.5),
            attribute("retrieval.documents.0.document.content", stringValue="text"),
        ],
    }
    for number, query in enumerate(QUERIES, 1)
]


@cache
def rows_of(table: str) -> list[dict[str, Any]]:
    """The rows of a table by its name."""
    asked = list(enumerate(QUERIES))
    passages = ("d1", "d2", "d3", "d4")
    tables: dict[str, list[dict[str, Any]]] = {
        "weights": [{"query_id": query, "weight": 1.5 + place} for place, query in asked],
        "slices": [{"query_id": query, "kind": "ab"[place % 2], "language": "de"} for place, query in asked],
        "groups": [{"passage_id": passage, "group": f"g{place // 2}"} for place, passage in enumerate(passages)],
        "lengths": [{"passage_id": passage, "tokens": 2 + place} for place, passage in enumerate(passages)],
        "asked": [{"query_id": query, "text": TEXTS[query]} for query in QUERIES],
        "costs": [
            {"run": run, "query_id": query, "tokens": 100 + place, "milliseconds": 9.5, "price": 0.001}
            for run in ("a", "b")
            for place, query in asked
        ],
        "clusters": [{"query_id": query, "cluster": f"c{place // 2}"} for place, query in asked],
        "sizes": [{"query_id": query, "corpus_size": 100 + place} for place, query in asked],
        "scores": [
            {"query_id": query, "run": run, "k": k, "score": (place + k) % 3 / 2}
            for run in ("a", "b")
            for k in (1, 2)
            for place, query in asked
        ],
        "closed": [{"query_id": query, "score": place % 2} for place, query in asked],
        "answered": [
            {
                "query_id": query,
                "run": run,
                "k": k,
                "score": (place + len(run)) % 3 / 2,
                "passages": " ".join(RUN[query][:k]),
            }
            for run, k in (("a", 2), ("random", 2), ("ideal", 2), ("closed-book", 0))
            for place, query in asked
        ],
        "references": [{"query_id": query, "reference": "x", "choices": '["x", "y", "z"]'} for query in QUERIES],
    }
    return tables[table]


@cache
def drafts() -> list[dict[str, Any]]:
    """Records of interleaved lists, each with its credit."""
    rows = []
    for number in range(6):
        draft = interleave({"a": ["d1", "d2", "d3"], "b": ["d2", "d4", "d1"]}, k=3, seed=f"i{number}")
        rows.append(
            draft.record(f"q{number % 3}", {draft.passages[0]: 1.0}, session=f"s{number % 4}", user=f"u{number}")
        )
    return rows


@cache
def arm_rows() -> list[dict[str, Any]]:
    """Rows of an A/B test: the arm, a rate, a mean, a value from before and the user."""
    return [
        {
            "arm": "ab"[i % 2],
            "cited": int(i % 7 < 2 + 3 * (i % 2)),
            "harm": i % 5 / 5,
            "before": i % 3 / 3,
            "user": f"u{i}",
        }
        for i in range(40)
    ]


@cache
def seeds() -> dict[str, bytes]:
    """The content of a file of every kind, by a name that has the suffix of the kind."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _labels_and_runs(root)
        _stored(root)
        _grading(root)
        _online(root)
        _tables(root)
        return {path.name: path.read_bytes() for path in sorted(root.iterdir())}


def _labels_and_runs(root: Path) -> None:
    labels = [
        {"query_id": query, "doc_id": passage, "grade": grade}
        for query, grades in LABELS.items()
        for passage, grade in grades.items()
    ]
    run = [
        {"query_id": query, "doc_id": passage, "score": 9.5 - rank}
        for query, passages in RUN.items()
        for rank, passage in enumerate(passages)
    ]
    for suffix in ("csv", "jsonl", "parquet"):
        write_rows(root / f"labels.{suffix}", labels)
        write_rows(root / f"run.{suffix}", run)
    trec = "".join(f"{row['query_id']} 0 {row['doc_id']} {row['grade']}\n" for row in labels)
    (root / "labels.trec").write_text(trec)
    lines = [list(labels[0]), *([*map(str, row.values())] for row in labels)]
    (root / "labels.tsv").write_text("".join("\t".join(line) + "\n" for line in lines))
    (root / "run.trec").write_text("".join(f"{row['query_id']} Q0 {row['doc_id']} 1 {row['score']} t\n" for row in run))
    for name in ("labels.trec", "run.csv", "labels.jsonl"):
        (root / f"{name}.gz").write_bytes(gzip.compress((root / name).read_bytes(), mtime=0))
    write_rows(root / "corpus.jsonl", [{"_id": each, "title": "", "text": TEXTS[each]} for each in TEXTS])
    queries = [{"query_id": query, "text": TEXTS[query], "weight": 1.5, "stratum": "s"} for query in QUERIES]
    write_rows(root / "queries.jsonl", queries)
    write_rows(root / "queries.csv", queries)
    (root / "questions.txt").write_text("".join(f"{TEXTS[query]}\n" for query in QUERIES))
    write_rows(root / "pairs.csv", [{"query_id": query, "doc_id": "d1"} for query in QUERIES])
    write_rows(root / "passages.csv", [{"document": each, "passages": 2} for each in ("d1", "d2", "d3")])
    write_rows(root / "log.csv", [{"N": 100, "K": 10, "R": 2, "hit": 1}, {"N": 100, "K": 10, "R": 1, "hit": 0}])
    write_rows(root / "log.jsonl", [{"N": 100, "K": 10, "R": 2, "hit": 1}, {"N": 100, "K": 10, "R": 1, "hit": 0}])


def _stored(root: Path) -> None:
    options: dict[str, Any] = {"corpus_size": 100, "scale": "utility", "depths": [1, 2], "bootstrap": rs.Bootstrap(20)}
    rs.evaluate(LABELS, {"run": RUN}, measures=["BoR", "RA-nWG", "Harm"], **options).save(root / "report.json")
    tally = rs.Tally(["Success", "P"], [1, 2], sized=True, scale="utility", resamples=10)
    tally.add_part(rs.Qrels.of(LABELS), rs.Run.of(RUN), corpus_size=100)
    (root / "tally.bin").write_bytes(tally.to_bytes())
    writer = TraceWriter(root / "trace.jsonl", texts=True)
    for number, query in enumerate(QUERIES):
        shown = RUN[query]
        retrieval = Retrieval(
            TEXTS[query], shown, shown, query, 100, tokens=10, seconds=0.5, texts=TEXTS, id=f"i{number}", arm="a"
        )
        writer.write(retrieval, 1e9 + number)
    writer.write_outcome("i1", 1.0, 2e9)
    writer.close()
    (root / "spans.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]}))


def _grading(root: Path) -> None:
    with Store(root / "store.db") as store:
        put(store, "m", {(query, passage): grade for query, of in LABELS.items() for passage, grade in of.items()})
        for name in ("exported.jsonl", "exported.csv", "exported.qrels"):
            export_labels(store, root / name)
    items = [Item(query, "d1", TEXTS[query], TEXTS["d1"]) for query in QUERIES]
    task = AnnotationTask("t", "a", DEFAULT_RUBRIC, tuple(items), {}, Draw("person", "a", None, {}))
    write_answers(root / "answers.json", task, {n: Answer(n, *item.fingerprints, 3) for n, item in enumerate(items)})
    rubric = 'schema = "rag-selectivity/rubric/1"\nname = "r"\ninstructions = "i"\n[levels]\n'
    (root / "rubric.toml").write_text(rubric + "".join(f'{level} = "words"\n' for level in range(1, 6)))


def _online(root: Path) -> None:
    log = RecordLog(root / "drafts.jsonl")
    for number in range(6):
        draft = interleave({"a": ["d1", "d2", "d3"], "b": ["d2", "d4", "d1"]}, k=3, seed=f"i{number}")
        log.draft(draft, f"q{number % 3}", session=f"s{number % 4}", user=f"u{number}")
        log.credit(draft.id, {draft.passages[number % 2]: 1.0})
    log.close()
    write_rows(root / "joined.jsonl", list(join_records(root / "drafts.jsonl")))
    write_rows(root / "arms.csv", arm_rows())
    write_rows(root / "arms.jsonl", arm_rows())
    writer = TraceWriter(root / "arms-trace.jsonl", texts=False)
    for number in range(8):
        writer.write(Retrieval("q", ["d1"], seconds=0.5, tokens=3, id=f"i{number}", arm="ab"[number % 2]), 1e9 + number)
        writer.write_outcome(f"i{number}", float(number % 3 == 0), 2e9)
    writer.close()


def _tables(root: Path) -> None:
    for name in TABLES:
        for suffix in (".csv", ".jsonl"):
            write_rows(root / f"{name}{suffix}", rows_of(name))
        (root / f"{name}.csv.gz").write_bytes(gzip.compress((root / f"{name}.csv").read_bytes(), mtime=0))
