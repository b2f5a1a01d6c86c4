"""The worlds in which the HTML report must work: their files, and the arguments of `rag-selectivity evaluate`."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rag_selectivity as rs
from tests.six_runs import NAMES, write_six_runs

#: {query: [passage, …]}, {query: {passage: grade}}
Lists = dict[str, list[str]]
Grades = dict[str, dict[str, int]]

#: What a text, an id or a name could try on a page.
HOSTILE = (
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'><link rel=stylesheet href=https://evil.test/a.css>",
    "<!-- <script> --!> ]]> <![CDATA[",
    "</style></template></textarea></title></svg><svg onload='window.harmed = 1'>",
    "lines\u2028and\u2029paragraphs of JavaScript",
    "\u202eturned round\u2066 \u200f\u200d\ufeff",
    "nul \x00, \ufffd, \x1b[2J and \x7f",
    "&lt;b&gt; &amp; &nbsp; \\u003c \\' ${harm} {{ harm }} {% harm %}",
    "a'b\"c`d",
    "塔 was built, 漢字, العربية, 👩‍👩‍👧 😀",
    "x" * 100_000,
    "https://example.test/" + "path/" * 200,
    "",
    " ",
)
#: Ids that files can hold, none of which is like another.
HOSTILE_IDS = (
    "</script>",
    "<!--",
    "a'b\"c`d",
    "&amp;",
    "two words",
    "😀",
    "#k=10&a=b%20c",
    "__proto__",
    "constructor",
    "\u202edi",
    "x" * 300,
    "0",
)


@dataclass(frozen=True)
class ReportWorld:
    """A folder with the files of a report.

    Attributes
    ----------
    arguments : tuple of str
        Those of `rag-selectivity evaluate`, without `--output`.
    runs : tuple of str
        The names of the runs, the baseline first.
    queries : tuple of str
        The ids of all queries.
    texts : {id: text}
        The texts of queries and passages that the report is given.
    """

    folder: Path
    arguments: tuple[str, ...]
    runs: tuple[str, ...]
    queries: tuple[str, ...]
    texts: Mapping[str, str]

    def report(self, *options: str) -> Path:
        """The report that the command makes, with further options."""
        target = self.folder / "report.html"
        self._run(*options, "--output", str(target))
        return target

    def decision(self, *options: str) -> dict[str, Any]:
        """The decision that `evaluate` gives on the same files, as JSON."""
        target = self.folder / "figures.json"
        self._run(*options, "--output", str(target))
        decision: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))["decision"]
        return decision

    def _run(self, *options: str) -> None:
        from typer.testing import CliRunner

        from rag_selectivity.cli.app import app

        given = ["evaluate", *self.arguments, "--resamples", "200", *options]
        done = CliRunner().invoke(app, given)
        if done.exit_code:
            raise RuntimeError(f"{' '.join(map(repr, given))} failed: {done.exception!r}\n{done.output}")


# -- real runs ---------------------------------------------------------------------------------------------


def six_runs(folder: Path, cranfield: Path, *, queries: int | None = None) -> ReportWorld:
    """Six runs on Cranfield with texts; of its first so many queries, if a number is given."""
    paths = write_six_runs(cranfield, folder)
    texts = {row["_id"]: row["text"] for row in _records(cranfield / "corpus.jsonl")}
    questions = {row["_id"]: row["text"] for row in _records(cranfield / "queries.jsonl")}
    shown = list(questions)[:queries]
    for path in (*paths.values(), *([folder / "qrels.trec"] if queries else [])):
        source = cranfield / "qrels.trec" if path.name == "qrels.trec" else path
        lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = set(shown)
        path.write_text("".join(line for line in lines if line.split(maxsplit=1)[0] in kept), encoding="utf-8")
    qrels = folder / "qrels.trec" if queries else cranfield / "qrels.trec"
    arguments = [qrels, "--scale", "utility", "-c", "rules.unjudged=worst"]
    arguments += ["--corpus", cranfield / "corpus.jsonl", "--queries", cranfield / "queries.jsonl"]
    for name, path in paths.items():
        arguments += [f"{name}={path}"]
    return ReportWorld(folder, tuple(map(str, arguments)), NAMES, tuple(shown), texts | questions)


# -- made ones ---------------------------------------------------------------------------------------------


def one_run(folder: Path) -> ReportWorld:
    """A single run with texts."""
    grades, runs = _collection(30, {"only": 1.0})
    return _written(folder, grades, runs, "--scale", "utility", texts=_texts_of(grades, runs))


def many_queries(folder: Path) -> ReportWorld:
    """Two runs of 20 passages for more queries than a page draws, of which nothing is known but ids."""
    grades, runs = _collection(400, {"good": 1.0, "poor": 0.2}, judged=8, depth=20)
    return _written(folder, grades, runs, "--scale", "utility", "--corpus-size", "1000000")


def partly_judged(folder: Path) -> ReportWorld:
    """Two runs whose passages have a label in three of ten cases."""
    grades, runs = _collection(40, {"good": 1.0, "poor": 0.2})
    draws = np.random.default_rng(5)
    some = {query: {p: grade for p, grade in row.items() if draws.random() < 0.3} for query, row in grades.items()}
    return _written(folder, some, runs, "--scale", "utility", texts=_texts_of(grades, runs))


def single_query(folder: Path) -> ReportWorld:
    """Two runs for one query, with texts."""
    grades, runs = _collection(1, {"good": 1.0, "poor": 0.2})
    return _written(folder, grades, runs, "--scale", "utility", texts=_texts_of(grades, runs))


def no_success(folder: Path) -> ReportWorld:
    """Two runs that retrieve nothing of use, one of them nothing at all for some queries."""
    grades, _ = _collection(20, {})
    useless = {query: [p for p, grade in row.items() if grade <= 2] for query, row in grades.items()}
    junk = {query: [*ids, *(f"junk-{query}-{rank}" for rank in range(10))] for query, ids in useless.items()}
    some = {query: [] if i % 3 == 0 else ids[:7] for i, (query, ids) in enumerate(junk.items())}
    return _written(folder, grades, {"junk": junk, "less junk": some}, "--scale", "utility", "--corpus-size", "5000")


def binary_without_size(folder: Path) -> ReportWorld:
    """Two runs with labels 0 and 1, the size of the corpus unknown."""
    grades, runs = _collection(30, {"good": 1.0, "poor": 0.2})
    binary = {query: {p: int(grade >= 4) for p, grade in row.items()} for query, row in grades.items()}
    return _written(folder, binary, runs)


def closed_labels(folder: Path) -> ReportWorld:
    """Two runs whose own top ten alone were labelled, by a judge, in a store that knows it."""
    grades, runs = _collection(30, {"good": 1.0, "poor": 0.2})
    texts = _texts_of(grades, runs)
    store = _graded(folder, {query: texts[query] for query in grades}, texts, runs, lambda q, p: grades[q].get(p, 1))
    return _written(folder, store, runs, "--scale", "utility", texts=texts, queries=tuple(grades))


def hostile(folder: Path) -> ReportWorld:
    """Ids, names, texts and reasons that try to be markup, script or layout."""
    draws = np.random.default_rng(11)
    queries = {f"{id_}?": HOSTILE[i] or "?" for i, id_ in enumerate(HOSTILE_IDS)}
    names = [*HOSTILE_IDS, *(f"{id_} {i}" for i, id_ in enumerate(HOSTILE_IDS))]
    passages = {name: HOSTILE[i % len(HOSTILE)] for i, name in enumerate(names)}
    runs = {
        '<b>bold</b> & "quoted"': {query: draws.permutation(names)[:15].tolist() for query in queries},
        "</script><script>window.harmed++</script>": {q: draws.permutation(names)[:15].tolist() for q in queries},
        "long " + "x" * 150: {query: draws.permutation(names)[:15].tolist() for query in queries},
    }
    store = _graded(folder, queries, passages, runs, lambda q, p: 1 + (len(q) + names.index(p)) % 5)
    return _written(folder, store, runs, "--scale", "utility", texts=queries | passages, queries=tuple(queries))


#: The worlds that need no data; `six_runs` needs Cranfield.
WORLDS: dict[str, Callable[[Path], ReportWorld]] = {
    each.__name__: each
    for each in (
        one_run,
        many_queries,
        partly_judged,
        single_query,
        no_success,
        binary_without_size,
        closed_labels,
        hostile,
    )
}


# -- how they are made -------------------------------------------------------------------------------------


def _collection(
    queries: int, skills: Mapping[str, float], *, judged: int = 12, depth: int = 30
) -> tuple[Grades, dict[str, Lists]]:
    """Labels of each query's own passages, and a run for each skill, by which a passage's grade raises it."""
    draws = np.random.default_rng(3)
    values = draws.choice([5, 4, 3, 2, 1], size=(queries, judged), p=[0.1, 0.1, 0.2, 0.3, 0.3])
    values[:, 0] = 5
    grades = {f"q{i}": {f"d{i}-{j}": int(grade) for j, grade in enumerate(row)} for i, row in enumerate(values)}
    runs: dict[str, Lists] = {}
    for name, skill in skills.items():
        others = depth  # as many passages without a label, of which the run takes some
        scores = draws.normal(size=(queries, judged + others))
        scores[:, :judged] += skill * (values - 2)
        order = np.argsort(-scores, axis=1)[:, :depth]
        runs[name] = {f"q{i}": [f"d{i}-{j}" for j in row] for i, row in enumerate(order)}
    return grades, runs


def _texts_of(grades: Mapping[str, Iterable[str]], runs: Mapping[str, Lists]) -> dict[str, str]:
    """A text for each query and each passage that has a label or was retrieved."""
    ids = dict.fromkeys(p for row in (*grades.values(), *(r for x in runs.values() for r in x.values())) for p in row)
    questions = {query: f"When was the tower of town {query[1:]} built?" for query in grades}
    about = "The towers of {} were built in {}, of brick.\n\nNothing else is known of it. " + "It is a text. " * 20
    return questions | {id_: about.format(id_, 1800 + i % 100) for i, id_ in enumerate(ids)}


def _graded(
    folder: Path,
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    runs: Mapping[str, Lists],
    grade: Callable[[str, str], int],
) -> Path:
    """A store with a judge's grades, and hostile reasons, of the top ten of every run."""
    pairs = dict.fromkeys((q, p) for run in runs.values() for q, ids in run.items() for p in ids[:10])
    labels = iter(pairs)

    async def judge(messages: object, schema: object) -> dict[str, object]:
        i = next(numbers)
        return {"reason": HOSTILE[i % 10], "grade": grade(*order[i])}

    order, numbers = list(labels), iter(range(len(pairs)))
    store = folder / "labels.db"
    rs.grade(queries, corpus, list(runs.values()), store=store, judge=judge, pool_depth=10, progress=False)
    return store


def _written(
    folder: Path,
    labels: Grades | Path,
    runs: Mapping[str, Lists],
    *options: str,
    texts: Mapping[str, str] | None = None,
    queries: tuple[str, ...] = (),
) -> ReportWorld:
    """The files of a world; with texts, their number is the size of the corpus."""
    arguments = list(options)
    if isinstance(labels, Path):
        arguments += [str(labels)]
    else:
        queries = tuple(labels)
        rows = ({"query_id": q, "passage_id": p, "grade": g} for q, row in labels.items() for p, g in row.items())
        arguments += [_jsonl(folder / "qrels.jsonl", rows)]
    for number, (name, lists) in enumerate(runs.items()):
        listed = (
            {"query_id": query, "passage_id": passage, "rank": rank}
            for query, ids in lists.items()
            for rank, passage in enumerate(ids, 1)
        )
        arguments += [f"{name}={_jsonl(folder / f'run-{number}.jsonl', listed)}"]
    if texts:
        for kind in ("queries", "corpus"):
            of_kind = ({"_id": i, "text": t} for i, t in texts.items() if (i in set(queries)) == (kind == "queries"))
            arguments += [f"--{kind}", _jsonl(folder / f"{kind}.jsonl", of_kind)]
    return ReportWorld(folder, tuple(arguments), tuple(runs), queries, texts or {})


def _jsonl(path: Path, rows: Iterable[Mapping[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _records(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
