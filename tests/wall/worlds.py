"""What scenarios measure: the public collections beside the checkout, and small worlds made with a fixed seed."""

import csv
import io
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.wall.wall import Missing

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def data(name: str) -> str:
    """The path of a file of the public collections, as `cranfield/qrels.trec`."""
    path = DATA / name
    if not path.exists():
        raise Missing(f"needs the public test collections in ../shared/data ({name})")
    return str(path)


def cranfield() -> dict[str, Any]:
    """What `evaluate` and `compare` take for two real runs over 1,400 abstracts with grades 2 to 5."""
    runs = {name: data(f"cranfield/runs/{name}.trec") for name in ("bm25", "lsa")}
    return {"qrels": data("cranfield/qrels.trec"), "runs": runs, "corpus_size": 1400, "scale": "utility"}


def dl19() -> dict[str, Any]:
    """TREC Deep Learning 2019: 43 queries, grades 0 to 3 as 1 to 5, the BM25 of 1,000 passages."""
    run = data("trec/run.msmarco-v1-passage.bm25-default.dl19.txt")
    qrels = data("trec/qrels.dl19-passage.txt")
    return {"qrels": qrels, "runs": {"bm25": run}, "corpus_size": 8_841_823, "grade_map": "0:1,1:3,2:4,3:5"}


@dataclass(frozen=True)
class Small:
    """Queries over 500 passages: labels of grades 1 to 5, two runs of 20, the pool of 40 that both were chosen from."""

    labels: dict[str, dict[str, int]]
    runs: dict[str, dict[str, list[str]]]
    pool: dict[str, list[str]]

    @property
    def given(self) -> dict[str, Any]:
        """What `evaluate` and `compare` take."""
        return {"qrels": self.labels, "runs": self.runs, "corpus_size": 500, "scale": "utility"}

    @property
    def binary(self) -> dict[str, dict[str, int]]:
        """The labels as 0 and 1."""
        return {query: {p: int(grade >= 4) for p, grade in row.items()} for query, row in self.labels.items()}


def small(queries: int = 40, seed: int = 7) -> Small:
    """A world in which run `good` ranks by grades with some noise, and run `bad` with much."""
    draw = random.Random(seed)
    labels, pool = {}, {}
    runs: dict[str, dict[str, list[str]]] = {"good": {}, "bad": {}}
    for number in range(queries):
        query = f"q{number:02}"
        found = [f"d{each:03}" for each in draw.sample(range(500), 40)]
        grades = {passage: draw.choices(range(1, 6), (9, 5, 4, 2, 1))[0] for passage in found}
        for name, noise in (("good", 1.5), ("bad", 4.0)):
            keys = {passage: grades[passage] + draw.gauss(0, noise) for passage in found}
            runs[name][query] = sorted(found, key=lambda passage: -keys[passage])[:20]
        pool[query] = found
        # Some of the pool has no label; the last query has no relevant one.
        labels[query] = {passage: grade for passage, grade in grades.items() if draw.random() < 0.9}
        if number == queries - 1:
            labels[query] = {passage: min(grade, 3) for passage, grade in labels[query].items()}
    return Small(labels, runs, pool)


def ranked(run: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Lists as {query: {passage: score}}."""
    return {query: {passage: 100.0 - rank for rank, passage in enumerate(row)} for query, row in run.items()}


def rows(table: Mapping[str, Any], *names: str) -> list[dict[str, Any]]:
    """{query: {passage: grade or score}} or {query: [passage]} as rows; a third name is that of grade or score."""
    found = []
    for query, row in table.items():
        for passage in row:
            value = {names[2]: row[passage]} if len(names) > 2 else {}
            found.append({names[0]: query, names[1]: passage, **value})
    return found


def table(path: str, lines: Iterable[Mapping[str, Any]], delimiter: str = ",") -> str:
    """A CSV or TSV file of rows."""
    lines = list(lines)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(lines[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    return path


def jsonl(path: str, lines: Iterable[Mapping[str, Any]]) -> str:
    """A file of JSON lines."""
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def trec(path: str | Path, found: Mapping[str, Any], tag: str = "run") -> str:
    """A TREC file: qrels of {query: {passage: int}}, a run of {query: [passage]}."""
    lines = []
    for query, row in found.items():
        for rank, passage in enumerate(row, 1):
            judged = isinstance(row, dict)
            lines.append(
                f"{query} 0 {passage} {row[passage]}" if judged else f"{query} Q0 {passage} {rank} {-rank} {tag}"
            )
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


#: A world of texts: what a question asks for is in the passages that name its subject.
SUBJECTS = ("ada", "dam", "trout", "moon", "tea", "glass", "salt", "violin")
QUESTIONS = {f"q{number}": f"What is known of {subject}?" for number, subject in enumerate(SUBJECTS, 1)}
REFERENCES = {f"q{number}": f"{subject} is old. {subject} is rare." for number, subject in enumerate(SUBJECTS, 1)}
TEXTS = {
    f"{subject}{part}": f"{subject} {('is old', 'is rare', 'is heavy', 'and rain')[part]}."
    for subject in SUBJECTS
    for part in range(4)
}
#: For each question two lists of four: its own passages first, or one of the next subject before them.
FIRST = {f"q{n}": [f"{s}{part}" for part in range(4)] for n, s in enumerate(SUBJECTS, 1)}
LATE = {
    f"q{n}": [f"{SUBJECTS[n % 8]}0", *((f"{s}0", f"{s}3") if n % 2 else (f"{s}3", f"{s}0")), f"{SUBJECTS[n % 8]}1"]
    for n, s in enumerate(SUBJECTS, 1)
}
#: People's grades: 5, 4, 4 and 3 for the passages on the subject, 1 for two on the next one.
GRADES = {
    f"q{n}": {
        **{f"{s}{part}": (5, 4, 4, 3)[part] for part in range(4)},
        **{f"{SUBJECTS[n % 8]}{part}": 1 for part in (0, 1)},
    }
    for n, s in enumerate(SUBJECTS, 1)
}
BY_QUESTION = {QUESTIONS[query]: row for query, row in GRADES.items()}


async def judge(messages: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """A scripted judge of grades and claims: it looks for the question's subject, and for the words of a claim."""
    text = messages[-1]["content"]
    fields = schema["properties"]
    subject = next((each for each in SUBJECTS if f"known of {each}" in text), "")
    if "claims" in fields:
        said = [f"{subject} is old.", f"{subject} is rare."]
        return {"claims": said, "entities": [subject]}
    passage = text.split("begin passage]\n")[-1].split("\n[")[0]
    if "grade" in fields:
        return {
            "reason": "by rule",
            "grade": 1 if subject not in passage else 5 if "old" in passage else 4 - ("rain" in passage),
        }
    supported = [number for number, word in enumerate(("old", "rare"), 1) if subject in passage and word in passage]
    said = {"supported": supported, "useful": bool(supported), "mentioned": [1] if subject in passage else []}
    said |= {"reason": "by rule", "statements": [{"statement": passage.strip(), "relevant": bool(supported)}]}
    return {name: value for name, value in said.items() if name in fields}


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as data."""
        return json.loads(self.out)


def command(*words: Any) -> Done:
    """Run a command of `rag-selectivity` in this process and in the working folder."""
    main = next(iter(entry_points(group="console_scripts", name="rag-selectivity"))).load()
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: Any = 0
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", ["rag-selectivity", *map(str, words)]),
        # Else help calls the program by the name of whatever module runs the wall.
        patch.object(sys.modules["__main__"], "__package__", None, create=True),
    ):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Done(int(code or 0), *texts)


def done(*words: Any, code: int = 0) -> Done:
    """Run a command that must end with this exit code."""
    found = command(*words)
    if found.code != code:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {found.code}: {found.err}")
    return found


def told(*words: Any, code: int = 0) -> Any:
    """The data that a command prints with `--format json`."""
    return done(*words, "--format", "json", code=code).json
