"""Writes the pictures of docs/explanation from the sample data: `paradox.png`, `why-set.png` and `labels.png`.

python docs/make_pictures.py [FOLDER]

FOLDER takes the pictures (default: docs/images).
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure

import rag_selectivity as rs
from rag_selectivity.render.plots import BLUE, GREY, ORANGE, over_k
from rag_selectivity.sample import write_sample

IMAGES = Path(__file__).resolve().parent / "images"
DEPTHS = (1, 2, 3, 5, 10, 20, 30)
#: From so many passages on, the second panel of the paradox calls a module large.
LARGE = 20
LARGEST = 80_000
CORPUS_SIZE = 1000


def main(words: list[str]) -> None:
    """Draw every picture on the sample, and say what was written."""
    if len(words) > 1:
        raise SystemExit("error: give at most one folder: docs/make_pictures.py [FOLDER]")
    folder = Path(words[0]) if words else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        sample = Path(scratch) / "sample"
        write_sample(sample)
        for name, draw in PICTURES.items():
            target = folder / f"{name}.png"
            # White, since the pages also have a dark mode.
            draw(sample).savefig(target, dpi=110, facecolor="white", metadata={"Software": None})
            size = target.stat().st_size
            if size > LARGEST:
                raise SystemExit(f"error: {target} has {size / 1000:.0f} kB, more than {LARGEST / 1000:.0f}")
            print(f"{target}: {size / 1000:.0f} kB")


def two_panels() -> tuple[Figure, Any]:
    """A figure that fits the width of a page, and its two axes."""
    figure = Figure(figsize=(9.2, 3.5), layout="constrained")
    return figure, figure.subplots(1, 2)


def paradox(sample: Path) -> Figure:
    """Success of BM25 and of a random draw over K, with one relevant passage and with a large module of them."""
    passages = [row["_id"] for row in records(sample / "corpus.jsonl")]
    expected = {row["_id"]: row["expected"] for row in records(sample / "queries.jsonl")}
    of_module = defaultdict(list)
    for passage in passages:
        of_module[passage.split(".")[0]].append(passage)
    dense = {query: of_module[passage.split(".")[0]] for query, passage in expected.items()}
    large = {query: relevant for query, relevant in dense.items() if len(relevant) >= LARGE}
    sparse = {query: [passage] for query, passage in expected.items()}
    figure, panels = two_panels()
    titles = ("One relevant passage for each question", "All passages of a large module are relevant")
    for axes, labels, title in zip(panels, (sparse, large), titles, strict=True):
        report = rs.evaluate(
            labels,
            {"bm25": sample / "bm25.trec"},
            corpus_size=len(passages),
            measures=["Success", "BoR_max"],
            depths=DEPTHS,
            ids="exact",
        )
        over_k(report, "Success", axes)
        axes.set_title(f"{title} ({len(labels)} questions)", fontsize="medium", pad=22)
        axes.set(ylabel="share of questions that succeed", xlabel="K passages shown")
    return figure


def why_set(sample: Path) -> Figure:
    """Eight measures of one set in two orders; recall and junk over K."""
    lists = defaultdict(list)
    for line in (sample / "reranked.trec").read_text(encoding="utf-8").splitlines():
        query, _, passage, *_ = line.split()
        lists[query].append(passage)
    orders = {
        "as ranked": {query: ids[:10] for query, ids in lists.items()},
        "reversed": {query: ids[9::-1] for query, ids in lists.items()},
    }
    names = ["RR", "AP", "nDCG", "ContextPrecision", "Success", "R", "RA-nWG", "Harm"]
    options: dict[str, Any] = {"scale": "utility", "measures": names, "bootstrap": None}
    report = rs.evaluate(sample / "grades.trec", orders, depths=[10], **options)
    figure, (left, right) = two_panels()
    for run, colour, marker in (("as ranked", BLUE, "o"), ("reversed", ORANGE, "D")):
        values = [report[run, name if name in ("RR", "AP") else f"{name}@10"].value for name in names]
        left.plot(values, range(len(names)), marker, color=colour, label=run, fillstyle="none", markersize=7)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.axhline(3.5, color=GREY, linewidth=0.8)
    left.set(xlim=(0, 1), xlabel="mean over 60 questions")
    left.set_title("The same ten passages in two orders", fontsize="medium")
    left.legend(frameon=False, fontsize="small", loc="lower left")
    report = rs.evaluate(sample / "grades.trec", {"reranked": sample / "reranked.trec"}, depths=DEPTHS, **options)
    for name, label, colour, style, above in (
        ("R", "recall", BLUE, "o-", -16),
        ("Harm", "junk (Harm)", ORANGE, "D--", 8),
    ):
        values = [report[f"{name}@{depth}"].value for depth in DEPTHS]
        right.plot(DEPTHS, values, style, color=colour)
        right.annotate(label, (DEPTHS[0], values[0]), xytext=(4, above), textcoords="offset points", color=colour)
    right.set(xscale="log", xlabel="K passages shown", ylim=(0, 1), ylabel="mean over 60 questions")
    right.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
    right.minorticks_off()
    right.set_title("Recall rises with K, and so does junk", fontsize="medium")
    return figure


def labels(sample: Path) -> Figure:
    """BoR of one run by a model and by dice, with and without random controls; two runs by three judges."""
    figure, (left, right) = two_panels()
    rows = bits_by_judge(sample)
    for y, (name, bits) in enumerate(rows):
        colour = ORANGE if name.startswith("dice") else BLUE
        interval(left, y, bits, colour)
    left.set_yticks(range(len(rows)), [name for name, _ in rows])
    left.axvline(0, color=GREY, linewidth=0.8)
    left.set(xlabel="BoR@10 of dense, in bits", ylim=(len(rows) - 0.5, -0.5))
    left.set_title("A judge that rolls dice, beside a model", fontsize="medium")
    judged = by_three_judges(sample)
    for y, report in enumerate(judged.values()):
        for run, colour, marker, shift in (("bm25", BLUE, "o", -0.13), ("dense", ORANGE, "D", 0.13)):
            interval(right, y + shift, report[run, "RA-nWG@10"], colour, marker, run if y == 0 else None)
    right.set_yticks(range(len(judged)), list(judged))
    right.set(xlabel="RA-nWG@10", xlim=(0, 1), ylim=(len(judged) - 0.5, -0.5))
    right.set_title("Which run is better, by whom", fontsize="medium")
    right.legend(frameon=False, fontsize="small", loc="lower left")
    return figure


def interval(
    axes: Any, y: float, figure: rs.Estimate, colour: str, marker: str = "o", label: str | None = None
) -> None:
    """A figure with its interval."""
    axes.plot([figure.low, figure.high], [y, y], color=colour, linewidth=1.6)
    axes.plot([figure.value], [y], marker, color=colour, label=label)


def bits_by_judge(sample: Path) -> list[tuple[str, rs.Estimate]]:
    """BoR@10 of the dense run by the labels of its own list, and with random controls."""
    grades, drawn = defaultdict[str, dict[str, int]](dict), defaultdict[str, list[str]](list)
    for row in csv.DictReader((sample / "grades.csv").read_text(encoding="utf-8").splitlines()):
        grades[row["query_id"]][row["passage_id"]] = int(row["first"])
        if row["drawn"] == "control":
            drawn[row["query_id"]].append(row["passage_id"])
    scored = defaultdict(list)
    for line in (sample / "dense.trec").read_text(encoding="utf-8").splitlines():
        query, _, passage, _, score, _ = line.split()
        scored[query].append((float(score), passage))
    shown = {query: [passage for _, passage in sorted(row, reverse=True)[:10]] for query, row in scored.items()}
    rng = random.Random(7)
    result = []
    for name in ("model", "dice"):
        given, controls = (
            {
                query: {passage: grades[query][passage] if name == "model" else rng.randint(1, 5) for passage in row}
                for query, row in chosen.items()
            }
            for chosen in (shown, drawn)
        )
        for how, asked in (("its own list", None), ("with controls", controls)):
            report = rs.evaluate(
                given,
                {"dense": sample / "dense.trec"},
                scale="utility",
                corpus_size=CORPUS_SIZE,
                measures=["BoR"],
                depths=[10],
                controls=asked,
            )
            result.append((f"{name}, {how}", report["BoR@10"]))
    return result


def by_three_judges(sample: Path) -> dict[str, rs.Report]:
    """RA-nWG@10 of two runs by the cheap judge, by the same calibrated, and by the chat model."""
    runs = {name: sample / f"{name}.trec" for name in ("bm25", "dense")}
    options: dict[str, Any] = {"corpus_size": CORPUS_SIZE, "measures": ["RA-nWG"], "depths": [10]}
    cheap = rs.evaluate(sample / "cheap.db", runs, **options)
    model = rs.evaluate(sample / "labels.db", runs, **options)
    three = ["bm25.trec", "dense.trec", "reranked.trec"]
    texts = ["--queries", "queries.jsonl", "--corpus", "corpus.jsonl"]
    annotate = ["labels", "draw", "cheap.db", *three, *texts, "--draw", "calibrate:200"]
    for words in (
        [*annotate, "--annotator", "scripted", "--output", "task.html"],
        ["labels", "import", "cheap.db", "answers.json"],
    ):
        subprocess.run([sys.executable, "-m", "rag_selectivity", *words], cwd=sample, check=True, capture_output=True)
    calibrated = rs.evaluate(sample / "cheap.db", runs, human=sample / "cheap.db", **options)
    return {"word-overlap": cheap, "… and 200\nscripted labels": calibrated, "chat model": model}


def records(path: Path) -> list[dict[str, str]]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


PICTURES: dict[str, Callable[[Path], Figure]] = {"paradox": paradox, "why-set": why_set, "labels": labels}

if __name__ == "__main__":
    main(sys.argv[1:])
