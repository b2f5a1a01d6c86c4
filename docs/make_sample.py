"""Writes the texts and the runs of the sample data set: `python docs/make_sample.py`, with Python 3.11.

The corpus is documentation strings of Python's standard library. The questions and the grades are not made here: each
question was written from one passage, in other words, and names it as `expected`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

FILES = Path(__file__).resolve().parents[1] / "rag_selectivity" / "sample" / "files"
PASSAGES, MOST_WORDS, MOST_CHARACTERS = 1000, 120, 1000
#: The depth of each run, and how much of the first two makes up the candidates of the reranker.
DEPTH, CANDIDATES = 30, 20
DIMENSIONS = 128
MODULES = tuple(
    each
    for line in (
        "argparse asyncio base64 bisect bz2 calendar collections collections.abc concurrent.futures configparser",
        "contextlib contextvars csv dataclasses datetime decimal difflib email.message email.utils enum filecmp",
        "fileinput fnmatch fractions ftplib functools getpass glob graphlib gzip hashlib heapq hmac html html.parser",
        "http.client http.cookies http.server importlib.metadata importlib.resources inspect io ipaddress itertools",
        "json logging logging.handlers lzma math os pathlib pickle platform queue random re sched secrets shelve",
        "shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess sys tarfile tempfile textwrap",
        "threading time timeit traceback tracemalloc types typing unittest unittest.mock urllib.parse urllib.request",
        "uuid warnings weakref xml.dom.minidom xml.etree.ElementTree zipfile zlib zoneinfo builtins",
    )
    for each in line.split()
)
#: The runs were made, and their top ranks graded, when a default in one title was the path of a Python. The words of
#: that path keep scores and ranks as they were graded.
INDEXED_AS = ("executable=sys.executable", "executable='root venv bin python'")
#: Parts of modules of which there would be more than anybody asks about.
LEFT_OUT = (
    "decimal.Context",
    "socket.CMSG",
    "bytes",
    "bytearray",
    "memoryview",
    "ssl.SSLObject",
    "email.message.Email",
)


# -- the corpus -------------------------------------------------------------------------------------


def documentation() -> Iterator[tuple[str, str, str]]:
    """(name, signature, documentation) of what the modules offer, each text once."""
    seen = set()
    for name, thing in offered():
        written = thing.__doc__ if inspect.isclass(thing) else inspect.getdoc(thing)
        if not isinstance(written, str) or name.startswith(LEFT_OUT):
            continue
        text = shortened(inspect.cleandoc(written))
        if text not in seen:
            seen.add(text)
            # Functions in C often open with their own signature.
            has_signature = re.match(r"[\w.]+\(.*?\)( ->|$|\n)", text)
            yield name, "" if has_signature else signature(thing), text


def offered() -> Iterator[tuple[str, Any]]:
    """(name, object) of the public functions, classes and methods of the modules."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        prefix = "" if module_name == "builtins" else f"{module_name}."
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]:
            thing = getattr(module, name, None)
            home = (getattr(thing, "__module__", None) or "").split(".")[0].lstrip("_")
            if not callable(thing) or home not in (module_name.split(".")[0], "", "posix", "nt"):
                continue
            if inspect.isclass(thing) and issubclass(thing, BaseException) and module_name == "builtins":
                continue
            yield f"{prefix}{name}", thing
            for own, value in vars(thing).items() if inspect.isclass(thing) else ():
                if own[0] != "_" and (isinstance(value, property) or callable(getattr(thing, own, None))):
                    yield f"{prefix}{name}.{own}", value if isinstance(value, property) else getattr(thing, own)


def shortened(text: str) -> str:
    """The first lines of a text, up to a number of words."""
    lines, words = [], 0
    for line in text.splitlines():
        words += len(line.split())
        if words > MOST_WORDS and lines:
            break
        lines.append(line.rstrip())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS].rsplit(None, 1)[0]


def signature(thing: Any) -> str:
    try:
        written = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    # The path of this Python is nobody else's.
    written = written.replace(repr(sys.executable), "sys.executable")
    written = written.replace("(self, ", "(").replace("(self)", "()")
    return "(...)" if " at 0x" in written or len(written) > 90 else written


def corpus(expected: set[str]) -> list[dict[str, str]]:
    """The passages, in the order of the modules: those that are expected, and those with the longest texts."""
    found = list(documentation())
    # A text of a few words says too little to be graded.
    longest = sorted(found, key=lambda each: (each[0] not in expected, -len(each[2])))[:PASSAGES]
    chosen = {name for name, _, _ in longest}
    return [
        {"_id": name, "title": f"{name}{arguments}", "text": text} for name, arguments, text in found if name in chosen
    ]


# -- the runs ---------------------------------------------------------------------------------------

Scores = Any  # float64[queries, passages]


def bm25(texts: list[str], questions: list[str]) -> Scores:
    retriever = bm25s.BM25()
    stop = {"stopwords": "en", "show_progress": False}
    retriever.index(bm25s.tokenize(texts, **stop), show_progress=False)
    return np.array([retriever.get_scores(words) for words in bm25s.tokenize(questions, **stop, return_ids=False)])


def dense(texts: list[str], questions: list[str]) -> Scores:
    """Cosines of vectors from a truncated singular value decomposition of tf-idf (latent semantic analysis)."""
    tf_idf = TfidfVectorizer(sublinear_tf=True, stop_words="english", token_pattern=r"[a-zA-Z]{2,}")
    reduced = TruncatedSVD(DIMENSIONS, random_state=7)
    passages = reduced.fit_transform(tf_idf.fit_transform(texts))
    asked = reduced.transform(tf_idf.transform(questions))
    norms = np.linalg.norm(asked, axis=1)[:, None] * np.linalg.norm(passages, axis=1)[None]
    return asked @ passages.T / np.maximum(norms, 1e-12)


def reranked(
    titles: list[str], texts: list[str], first: Sequence[Scores], candidates: list[list[int]], questions: list[str]
) -> Scores:
    """The scores of the first runs and half of that of common stems, each scaled to [0, 1] over the candidates."""
    stems = [stems_of(f"{title} {text}") for title, text in zip(titles, texts, strict=True)]
    held = Counter(stem for each in stems for stem in each)
    scores = np.full(first[0].shape, -np.inf)
    for row, (question, places) in enumerate(zip(questions, candidates, strict=True)):
        weights = {stem: np.log(len(texts) / held[stem]) for stem in stems_of(question) if held[stem]}
        common = np.array([sum(weights[stem] for stem in stems[place] & weights.keys()) for place in places])
        scores[row, places] = sum(scaled(each[row, places]) for each in first) + scaled(common) / 2
    return scores


def scaled(scores: Any) -> Any:
    span = np.ptp(scores)
    return (scores - scores.min()) / span if span else np.zeros(len(scores))


def stems_of(text: str) -> set[str]:
    """The first five letters of each word, without the endings of English."""
    words = re.findall(r"[a-z]{3,}", re.sub(r"[._]", " ", text.lower()))
    return {re.sub(r"(ing|ed|es|s|e)$", "", word)[:5] for word in words}


def best(scores: Any, depth: int) -> list[int]:
    """The places of the highest scores; of equal ones, the earlier passage first."""
    order = np.argsort(-scores, kind="stable")[:depth]
    return [int(place) for place in order if np.isfinite(scores[place])]


def as_read(places: list[int], scores: Any, names: list[str]) -> list[int]:
    """The places in the order in which a TREC file is read: equal scores, as they are written, by descending id."""
    return sorted(sorted(places, key=names.__getitem__, reverse=True), key=lambda place: -round(scores[place], 4))


# -- the files --------------------------------------------------------------------------------------


def main() -> None:
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("error: the sample's texts are those of Python 3.11: run this with Python 3.11")
    warnings.simplefilter("ignore")
    queries = [json.loads(line) for line in (FILES / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = {each["expected"] for each in queries}
    passages = corpus(expected)
    names = [each["_id"] for each in passages]
    if missing := sorted(expected - set(names)):
        raise SystemExit(f"error: the library lacks expected passages: {', '.join(missing)}")
    write_lines("corpus.jsonl", (json.dumps(each, ensure_ascii=False) for each in passages))
    titles = [each["title"].replace(*INDEXED_AS) for each in passages]
    questions = [each["text"] for each in queries]
    texts = [f"{title}\n{each['text']}" for title, each in zip(titles, passages, strict=True)]
    scores = {"bm25": bm25(texts, questions), "dense": dense(texts, questions)}
    candidates = [
        list(dict.fromkeys(best(scores["bm25"][row], CANDIDATES) + best(scores["dense"][row], CANDIDATES)))
        for row in range(len(queries))
    ]
    scores["reranked"] = reranked(titles, texts, list(scores.values()), candidates, questions)
    for run, rows in scores.items():
        write_lines(
            f"{run}.trec",
            (
                f"{query['_id']} Q0 {names[place]} {rank} {row[place]:.4f} {run}"
                for query, row in zip(queries, rows, strict=True)
                for rank, place in enumerate(as_read(best(row, DEPTH), row, names), 1)
            ),
        )


def write_lines(name: str, lines: Iterable[str]) -> None:
    (FILES / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
