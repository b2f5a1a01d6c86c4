"""The files of the sample data set: those that are packed, and those that are made from them."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from shutil import copyfile, copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.evaluation.evaluate import evaluate
from rag_selectivity.grading.store import Store
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.people.answers import Answer, write_answers
from rag_selectivity.people.making import make_tasks
from rag_selectivity.sample.judges import cheap_grade, dice_grade, first_grade, scripted_grade, write_store
from rag_selectivity.sample.rows import FILES, SEED, expected, graded_pairs, records, run, texts
from rag_selectivity.tables.writing import json_text, refuse_unwritable_folder, write_rows, write_whole

_RUNS = ("bm25", "dense", "reranked")
_K = 10
#: Passages of each row of Ragas: what fits into a prompt.
_CONTEXTS = 5
#: Pairs that the scripted annotators grade.
_AGREED, _CALIBRATED = 200, 200


def write_sample(folder: str | Path) -> list[Path]:
    """Write the sample data set into a new or empty folder, and return the paths of its files.

    The folder's README.md says what each file is, what is known about the labels, and where they mislead. The files are
    the same at each call, but for the times in the label stores.

    Raises
    ------
    InputError
        If the folder holds anything, or cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in write_sample(folder)][:3]
    ['PSF-LICENSE.txt', 'README.md', 'answers.json']
    """
    place = Path(folder)
    try:
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise InputError(f"{place}: give a new or an empty folder, so that no file of yours is overwritten")
        refuse_unwritable_folder(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=place.parent) as made:
            try:
                _write(Path(made))
            except InputError as error:
                # The files are made in another folder than the user's.
                raise InputError(str(error).replace(made, str(place))) from None
            place.mkdir(exist_ok=True)
            for path in sorted(Path(made).iterdir()):
                path.replace(place / path.name)
    except OSError as error:
        raise InputError(f"{place}: cannot be written ({error.strerror or error})") from None
    return sorted(path for path in place.rglob("*") if path.is_file())


def _write(folder: Path) -> None:
    copytree(FILES, folder, ignore=ignore_patterns("__pycache__"), copy_function=copyfile, dirs_exist_ok=True)
    _write_labels(folder)
    write_store(folder / "labels.db", "chat-model", first_grade)
    write_store(folder / "cheap.db", "word-overlap", cheap_grade)
    write_store(folder / "dice.db", "dice", dice_grade)
    _write_scripted_people(folder)
    _write_live(folder)
    measures = ["Success", "RA-nWG", "Harm", "Judged"]
    labels, lists = folder / "grades.trec", {"bm25": folder / "bm25.trec"}
    evaluate(labels, lists, scale="utility", depths=[3, 5, _K], measures=measures).save(folder / "before.json")


# -- labels -----------------------------------------------------------------------------------------


def _write_labels(folder: Path) -> None:
    pairs = [pair for pair in graded_pairs() if pair.drawn != "control"]
    controls = [pair for pair in graded_pairs() if pair.drawn == "control"]
    first = [(pair.query, pair.passage, pair.first) for pair in pairs]
    _write_qrels(folder / "grades.trec", first)
    _write_qrels(folder / "second.trec", [(pair.query, pair.passage, pair.second) for pair in pairs])
    _write_qrels(folder / "qrels.trec", [(query, passage, int(grade >= 4)) for query, passage, grade in first])
    _write_qrels(folder / "expected.trec", [(query, passage, 1) for query, passage in expected().items()])
    _write_qrels(folder / "controls.trec", [(pair.query, pair.passage, int(pair.first >= 4)) for pair in controls])
    formats = folder / "formats"
    (formats / "beir" / "qrels").mkdir(parents=True)
    _write_qrels(formats / "graded03.trec", [(query, passage, max(0, grade - 2)) for query, passage, grade in first])
    rows = [{"query_id": query, "passage_id": passage, "grade": grade} for query, passage, grade in first]
    for name in ("labels.csv", "labels.jsonl"):
        write_rows(formats / name, rows)
    of_beir = (f"{query}\t{passage}\t{grade}\n" for query, passage, grade in first)
    write_whole(formats / "beir" / "qrels" / "test.tsv", "".join(["query-id\tcorpus-id\tscore\n", *of_beir]))
    for name in ("corpus.jsonl", "queries.jsonl"):
        copyfile(FILES / name, formats / "beir" / name)


def _write_scripted_people(folder: Path) -> None:
    """What the scripted annotators say of pairs drawn at random, and of a draw for calibrated figures."""
    drawn = Random(SEED).sample([pair for pair in graded_pairs() if pair.origins], _AGREED)
    _write_qrels(
        folder / "scripted.qrels", [(pair.query, pair.passage, scripted_grade("scripted", pair)) for pair in drawn]
    )
    by_pair = {(pair.query, pair.passage): pair for pair in graded_pairs()}
    with TemporaryDirectory() as name:
        # A draw is kept in its store; whoever follows the guides makes it in the store of this folder.
        write_whole(Path(name) / "cheap.db", (folder / "cheap.db").read_bytes())
        with Store(Path(name) / "cheap.db") as store:
            (task,) = make_tasks(
                store,
                f"calibrate:{_CALIBRATED}",
                queries=folder / "queries.jsonl",
                corpus=folder / "corpus.jsonl",
                runs={run_name: folder / f"{run_name}.trec" for run_name in _RUNS},
                annotators=["scripted"],
            ).tasks
    answers = {
        number: Answer(number, *item.fingerprints, scripted_grade("scripted", by_pair[item.query, item.passage]))
        for number, item in enumerate(task.items)
    }
    write_answers(folder / "answers.json", task, answers)


# -- live retrievals --------------------------------------------------------------


def _relevant() -> dict[str, set[str]]:
    """The passages of grade 4 or 5 of each query, as `qrels.trec` has them."""
    relevant: dict[str, set[str]] = {query: set() for query in texts("queries.jsonl")}
    for pair in graded_pairs():
        if pair.first >= 4 and pair.drawn != "control":
            relevant[pair.query].add(pair.passage)
    return relevant


def _write_live(folder: Path) -> None:
    """What an application would leave behind: rows of Ragas, a trace, and spans of OpenTelemetry."""
    questions, passages = texts("queries.jsonl"), texts("corpus.jsonl")
    bodies = {record["_id"]: record["text"] for record in records("corpus.jsonl")}
    shown, relevant = run("reranked"), _relevant()
    rows = [
        {
            "query_id": query,
            "user_input": questions[query],
            "retrieved_context_ids": ids[:_CONTEXTS],
            "retrieved_contexts": [passages[passage] for passage in ids[:_CONTEXTS]],
            "reference": bodies[expected()[query]].split("\n\n")[0],
            "reference_context_ids": sorted(relevant[query]),
        }
        for query, ids in shown.items()
    ]
    write_rows(folder / "ragas.jsonl", rows)
    candidates = run("candidates")
    monitor = Monitor(
        folder / "grades.trec",
        scale="utility",
        corpus_size=len(passages),
        trace=folder / "trace.jsonl",
        trace_texts=True,
    )
    for query, ids in shown.items():
        of_pool = {passage: passages[passage] for passage in candidates[query]}
        monitor.record(Retrieval(questions[query], ids[:_K], candidates[query], query_id=query, texts=of_pool))
    monitor.close()
    spans = [_span(number, query, questions[query], shown[query][:_K]) for number, query in enumerate(shown, 1)]
    write_whole(folder / "spans.json", json_text({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")


def _span(number: int, query: str, question: str, ids: list[str]) -> dict[str, Any]:
    """A retriever span in OTLP's JSON, as instrumentations of OpenInference write it."""
    values = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    values["metadata"] = json.dumps({"query_id": query})
    values |= {f"retrieval.documents.{place}.document.id": passage for place, passage in enumerate(ids)}
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "search",
        "startTimeUnixNano": f"{number}000000000",
        "endTimeUnixNano": f"{number}250000000",
        "attributes": [{"key": name, "value": {"stringValue": value}} for name, value in values.items()],
    }


# -- forms of files ---------------------------------------------------------------------------------


def _write_qrels(path: Path, rows: Iterable[tuple[str, str, int]]) -> None:
    write_whole(path, "".join(f"{query} 0 {passage} {grade}\n" for query, passage, grade in rows))
