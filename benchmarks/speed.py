"""What speed and memory are promised for, measured, with the peers beside it: a row a case.

    python -m benchmarks.speed [PART ...] [--queries 6980] [--depth 1000] [--rounds 3] [--quick]

Every contender has a process of its own, whose peak memory counts; the contenders of a part take turns, and the least
of the rounds counts. Times leave out imports and making objects in memory, but for starts of the command. Contenders
that read the same rows must find the same figures, or the script fails. `--quick` takes 100 queries: it shows that all
runs, and its ratios say nothing. The part `large` writes 1.7 GB.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import speed_data

#: What a contender does: it prepares, and returns the work that is timed, and how often to do it (the least counts).
Work = Callable[[], dict[str, float] | None]
SUCCESS, DEPTHS = (1, 5, 10), (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
QUICK = {"queries": 100, "depth": 50, "rounds": 1}
SMALL = ["Success", "P", "R", "nDCG"]


@dataclass(frozen=True)
class Row:
    """A case: the contender, and at most how many times the peers, seconds and megabytes it may take."""

    work: str
    ours: str
    peers: dict[str, float] = field(default_factory=dict)
    seconds: float = math.inf
    megabytes: float = math.inf


# -- contenders: (folder, queries, depth) → work ------------------------------------------------------------


def _frame(kind: str, folder: Path) -> Any:
    """The run as a frame of a library."""
    import polars as pl

    frame = pl.read_parquet(folder / "run.parquet")
    return {"polars": lambda: frame, "arrow": frame.to_arrow, "pandas": frame.to_pandas}[kind]()


def measure(run: str, folder: Path, queries: int, depth: int, *, labels: str = "qrels") -> Work:
    """Load and measure a file, or a frame that is at hand."""
    import polars  # noqa: F401 - the file on which contenders are tried is too small to need it

    import rag_selectivity as rs

    source: Any = _frame(run, folder) if run in FRAMES else folder / run
    options: dict[str, Any] = {"corpus_size": speed_data.CORPUS_SIZE, "policy": "trec_eval", "bootstrap": None}

    def work() -> dict[str, float]:
        given = {"run": source}
        report = rs.evaluate(folder / f"{labels}.trec", given, measures=["Success", "BoR"], **options)
        return {f"Success@{k}": report["run", f"Success@{k}"].value for k in SUCCESS}

    return work


def pytrec(folder: Path, queries: int, depth: int) -> Work:
    import pytrec_eval

    def work() -> dict[str, float]:
        with (folder / "qrels.trec").open() as labels, (folder / "run.trec").open() as lists:
            qrels, run = pytrec_eval.parse_qrel(labels), pytrec_eval.parse_run(lists)
        wanted = {f"{name}.{','.join(map(str, DEPTHS))}" for name in ("success", "recall")}
        rows = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run).values()
        return {f"Success@{k}": sum(row[f"success_{k}"] for row in rows) / len(qrels) for k in SUCCESS}

    return work


def polars(run: str, folder: Path, queries: int, depth: int) -> Work:
    """Success at ten depths and nothing else; ranks by score, equal scores in any order.

    A frame of another library is converted, which is a part of the work.
    """
    import polars as pl

    form: dict[str, Any] = {"separator": " ", "has_header": False}
    text = {"query_id": pl.String, "doc_id": pl.String}
    names = ["query_id", "q0", "doc_id", "rank", "score", "tag"]
    scans: dict[str, Callable[[], pl.LazyFrame]] = {
        "trec": lambda: pl.scan_csv(folder / run, new_columns=names, schema_overrides=text, **form),
        "csv": lambda: pl.scan_csv(folder / run, schema_overrides=text),
        "jsonl": lambda: pl.scan_ndjson(folder / run),
        "parquet": lambda: pl.scan_parquet(folder / run),
    }
    frame = _frame(run, folder) if run in FRAMES else None

    def work() -> dict[str, float]:
        lists = scans[run.rpartition(".")[2]]() if frame is None else pl.DataFrame(frame).lazy()
        names = ["query_id", "q0", "doc_id", "grade"]
        qrels = pl.scan_csv(folder / "qrels.trec", new_columns=names, schema_overrides=text, **form)
        ranked = lists.select(
            "query_id", "doc_id", rank=pl.col("score").rank("ordinal", descending=True).over("query_id")
        )
        first = ranked.join(qrels, on=["query_id", "doc_id"]).group_by("query_id").agg(pl.col("rank").min()).collect()
        count = qrels.select(pl.col("query_id").n_unique()).collect().item()
        found = {k: float((first["rank"] <= k).sum() / count) for k in DEPTHS}
        return {f"Success@{k}": found[k] for k in SUCCESS}

    return work


def of_dicts(peer: bool, folder: Path, queries: int, depth: int) -> Work:
    """225 × 100 as dicts, without intervals."""
    qrels, run = speed_data.dicts(225, 100)
    if peer:
        import pytrec_eval

        names = {f"{name}.5,10,20" for name in ("success", "P", "recall", "ndcg_cut")}
        return lambda: pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run) and None
    from rag_selectivity import evaluate

    return lambda: evaluate(qrels, {"run": run}, measures=SMALL, depths=[5, 10, 20], bootstrap=None) and None


def of_one_query(folder: Path, queries: int, depth: int) -> Work:
    """The figures of one query by six measures, the join included, as an adapter asks for them."""
    from rag_selectivity.single import figures_of_query

    labels, passages = {f"d{i}": 1 + i % 5 for i in range(30)}, [f"d{i}" for i in range(0, 60, 3)]
    measures = ["RA-nWG@10", "Harm@10", "Success@10", "BoR@10", "PROC@10", "nDCG@10"]
    return lambda: figures_of_query(measures, labels, passages, scale="utility", corpus_size=10_000) and None


def of_runs(kind: str, folder: Path, queries: int, depth: int) -> Work:
    """Two runs of 100 passages in memory: evaluated, by four columns of slices, or compared."""
    import rag_selectivity as rs

    qrels, run = speed_data.dicts(queries, 100)
    other = {query: dict(zip(row, reversed(row.values()), strict=True)) for query, row in run.items()}
    runs = {"one": run, "other": other} if kind in ("two", "compare") else {"one": run}
    options: dict[str, Any] = {"corpus_size": 10_000}
    if kind == "by":
        options["by"] = [str(speed_data.slices(folder, list(qrels))), "R"]
    return partial(rs.compare if kind == "compare" else rs.evaluate, qrels, runs, **options)


def of_intervals(resamples: int, folder: Path, queries: int, depth: int) -> Work:
    """Ten depths of three measures, of a run that is joined already."""
    import rag_selectivity as rs

    qrels, run = speed_data.dicts(queries, 100)
    judged = {"run": rs.join(rs.Qrels.of(qrels), rs.Run.of(run), corpus_size=10_000)}
    bootstrap = rs.Bootstrap(resamples) if resamples else None
    depths = [1, 2, 3, 5, 10, 20, 30, 50, 70, 100]
    return partial(rs.evaluate_joined, judged, measures=["Success", "BoR", "nDCG"], depths=depths, bootstrap=bootstrap)


def of_million(folder: Path, queries: int, depth: int) -> Work:
    """A report of 143 times the queries (a million) by seven measures, from counts."""
    import numpy as np

    import rag_selectivity as rs

    n = 143 * queries
    rng = np.random.default_rng(1)
    relevant = rng.geometric(0.4, n)
    judged = rs.JudgedRun.from_counts(np.full(n, 1_000_000), np.full(n, 10), relevant, rng.random(n) < 0.6)
    measures = ["Success", "BoR", "EF", "RandomSuccess", "BoR_max", "BoR_opt", "lambda"]
    return partial(rs.evaluate_joined, {"run": judged}, measures=measures, depths=[10])


def of_judge(report: bool, folder: Path, queries: int, depth: int) -> Work:
    """60 queries × 3 runs with a judge's labels, a tail and controls: evaluated, or the page."""
    import rag_selectivity as rs

    qrels, run = speed_data.dicts(60, 60)
    lists = {f"r{n}": {q: [*list(row)[n:], *list(row)[:n]] for q, row in run.items()} for n in range(3)}
    texts = {passage: f"passage {passage}" for row in run.values() for passage in row}
    texts |= {f"other{i}": f"passage other{i}" for i in range(2000)}

    async def judge(messages: Any, schema: Any) -> str:
        return json.dumps({"reason": "as it is", "grade": 1 + sum(map(ord, str(messages)[-60:])) % 5})

    store = folder / f"labels{report}.db"
    given: dict[str, Any] = {"pool_depth": 20, "tail": "50:5", "controls": 4, "progress": False}
    if not store.exists():
        rs.grade({q: f"what of {q}?" for q in qrels}, texts, list(lists.values()), store=store, judge=judge, **given)

    def work() -> None:
        made = rs.evaluate(store, lists, corpus_size=len(texts))
        if report:
            made.to_html()

    return work


def of_command(words: list[str], folder: Path, queries: int, depth: int) -> Work:
    """A process, from its start to its end."""
    given = [str(folder / word) if (folder / word).exists() and "." in word else word for word in words]
    return lambda: subprocess.run([sys.executable, *given], check=True, stdout=subprocess.DEVNULL, cwd=folder) and None


def of_opening(folder: Path, queries: int, depth: int) -> Work:
    """The page in Chromium, until the table of queries is painted."""
    from playwright.sync_api import sync_playwright

    from tests.browser import chromium_program

    browser = sync_playwright().start().chromium.launch(executable_path=chromium_program(), args=["--no-sandbox"])

    def work() -> None:
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.goto((folder / "report.html").as_uri())
        tab.wait_for_selector("html[data-explorer=ready]")
        # The second frame begins when the first one, with the table, is painted.
        tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        tab.close()

    return work


FRAMES = ("polars", "arrow", "pandas")
OURS = ["-m", "rag_selectivity"]
OF_PAGE = [*OURS, "evaluate", "grades.trec", "bm25.trec", "dense.trec", "--scale", "utility"]
FORMS = ("run.trec.gz", "repr.trec", "ties.trec", "unsorted.trec", "shuffled.trec", "blanks.trec")
TABLES = ("run.parquet", "run.csv", "run.jsonl", *FRAMES)
CONTENDERS: dict[str, Callable[[Path, int, int], Work]] = {
    **{run: partial(measure, run) for run in ("run.trec", *FORMS, *TABLES, "run4.trec", "run6.trec")},
    **{f"Polars, {run}": partial(polars, run) for run in ("run.trec", *TABLES)},
    "698,000 judged": partial(measure, "run.trec", labels="dense"),
    "pytrec_eval": pytrec,
    "dicts": partial(of_dicts, False),
    "pytrec_eval, dicts": partial(of_dicts, True),
    "one query": of_one_query,
    **{kind: partial(of_runs, kind) for kind in ("one", "two", "by", "compare")},
    "5,000 resamples": partial(of_intervals, 5000),
    "no resamples": partial(of_intervals, 0),
    "a million": of_million,
    "judge": partial(of_judge, False),
    "judge, page": partial(of_judge, True),
    "import numpy": partial(of_command, ["-c", "import numpy"]),
    "import rag_selectivity": partial(of_command, ["-c", "import rag_selectivity"]),
    **{word: partial(of_command, [*OURS, word]) for word in ("--version", "--help", "explain")},
    "evaluate": partial(of_command, OF_PAGE),
    "evaluate --by": partial(of_command, [*OF_PAGE, "--by", "by.csv", "--by", "R"]),
    "report": partial(of_command, [*OF_PAGE, "--corpus=corpus.jsonl", "--queries=queries.jsonl", "-o", "report.html"]),
    "Chromium": of_opening,
}
COMMANDS = {name for name, make in CONTENDERS.items() if isinstance(make, partial) and make.func is of_command}
#: A folder with two queries, of which each contender is tried before its time counts.
TINY = "tiny"
#: Contenders that are too short for one go, and how often they are repeated; the least counts.
REPEATED = {
    "dicts": 40,
    "pytrec_eval, dicts": 40,
    "one query": 200,
    "5,000 resamples": 3,
    "no resamples": 3,
}
#: Contenders whose data are in memory before: what they add to it counts.
HELD = {*FRAMES, *(f"Polars, {name}" for name in FRAMES), "5,000 resamples", "no resamples"}
MAY_BE_MISSING = {"pytrec_eval", "pytrec_eval, dicts", "Chromium", *(name for name in CONTENDERS if "Polars" in name)}
PARTS: dict[str, tuple[Row, ...]] = {
    "read": (
        Row("TREC, load and measure", "run.trec", {"pytrec_eval": 0.2, "Polars, run.trec": 1.3}, megabytes=450),
        *(Row(f"the same, {run}", run, {"run.trec": 1.5}) for run in FORMS[:4]),
        Row("the same, shuffled lines", "shuffled.trec", {"run.trec": 2.5}),
        Row("the same, a tenth of the rows judged", "698,000 judged", {"run.trec": 2.0}, megabytes=800),
        Row("the same, runs of blanks", "blanks.trec", {"pytrec_eval": 1.2}),
    ),
    "tables": tuple(Row(f"{run}, load and measure", run, {f"Polars, {run}": 1.3}) for run in TABLES),
    "large": tuple(
        Row(f"TREC, {n} times the rows", f"run{n}.trec", {"run.trec": 1.3 * n}, megabytes=450) for n in (4, 6)
    ),
    "small": (
        Row("dicts, 225 × 100, no intervals", "dicts", {"pytrec_eval, dicts": 2.0}),
        Row("one query, six measures, join included", "one query", seconds=0.001),
    ),
    "figures": (
        Row("intervals: three measures, ten depths", "5,000 resamples", seconds=0.3, megabytes=150),
        Row("the same without", "no resamples"),
        Row("slices by four columns, in Python", "by", {"one": math.inf}),
        Row("two runs compared", "compare", {"two": 2.0}),
        Row("report of 143 times the queries (a million), seven measures", "a million", seconds=20, megabytes=700),
    ),
    "waiting": (
        Row("60 queries × 3 runs, a judge's labels, tail, controls: evaluate", "judge", seconds=1.0),
        Row("the same, the page", "judge, page", seconds=2.5),
        Row("import rag_selectivity", "import rag_selectivity", {"import numpy": 1.3}),
        *(Row(f"rag-selectivity {word}", word, seconds=0.3) for word in ("--version", "--help", "explain")),
    ),
    "page": (
        Row("evaluate with --by of four columns", "evaluate --by", {"evaluate": 1.3}),
        Row("report.html, 50 passages a query with texts", "report", {"evaluate": 2.0}, seconds=10),
        Row("the same, opened in Chromium", "Chromium", seconds=2),
    ),
}


def prepare(part: str, folder: Path, queries: int, depth: int) -> None:
    """Make the files of a part, once."""
    made = folder / f"{part}.made"
    if made.exists():
        return
    (folder / TINY).mkdir(exist_ok=True)
    for where, size in ((folder, (queries, depth)), (folder / TINY, (2, 10))):
        if part in ("read", "tables", "large") and not (where / "run.jsonl").exists():
            speed_data.of_runs(where, *size)
        for times in (4, 6) if part == "large" else ():
            speed_data.larger(where, times)
    if part == "page":
        speed_data.with_texts(folder, queries)
        speed_data.slices(folder, [f"q{query}" for query in range(queries)])
    made.touch()


def memory(name: str) -> float:
    """Megabytes of this process, now (VmRSS) or at their peak (VmHWM); NaN where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith(name)), math.nan)


def child(name: str, folder: Path, queries: int, depth: int) -> dict[str, Any]:
    """What a process of its own does."""
    if (folder / TINY).exists() and name not in COMMANDS:
        CONTENDERS[name](folder / TINY, 2, 10)()  # imports what it needs
    work = CONTENDERS[name](folder, queries, depth)
    before = memory("VmRSS") if name in HELD else 0.0
    if before:
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    seconds, found = math.inf, None
    for _ in range(REPEATED.get(name, 1)):
        start = time.perf_counter()
        found = work()
        seconds = min(seconds, time.perf_counter() - start)
    figures = found if isinstance(found, dict) else {}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000 if name in COMMANDS else memory("VmHWM")
    return {"seconds": seconds, "megabytes": peak - before, "figures": figures}


def rows(part: str, folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """The lines of a part of the table."""
    size = ["--queries", str(given.queries), "--depth", str(given.depth), "--folder", str(folder)]
    start = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed", *size]
    subprocess.run([*start, "--prepare", part], check=True)
    names = list(dict.fromkeys(name for row in PARTS[part] for name in (*row.peers, row.ours)))
    best: dict[str, dict[str, Any]] = {}
    for _ in range(given.rounds):
        for name in names:
            done = subprocess.run([*start, f"--child={name}"], capture_output=True, text=True, check=False)
            if done.returncode:
                said = f"{name}: {done.stderr.strip().splitlines()[-1]}"
                if name not in MAY_BE_MISSING:
                    sys.exit(said)
                print(said, file=sys.stderr)
                continue
            result = json.loads(done.stdout.splitlines()[-1])
            known = best.setdefault(name, result)
            known |= {unit: min(known[unit], result[unit]) for unit in ("seconds", "megabytes")}
    _check(best)
    for row in PARTS[part]:
        if row.ours in best:
            yield line(row, best)


def _check(best: dict[str, dict[str, Any]]) -> None:
    """All that read the same rows with the same labels must find the same figures."""
    left_out = {"ties.trec", "698,000 judged", "run4.trec", "run6.trec"}
    found = {name: each["figures"] for name, each in best.items() if each["figures"] and name not in left_out}
    for name, figures in found.items():
        expected = next(iter(found.values()))
        if any(abs(figures[key] - expected[key]) > 1e-9 for key in expected):
            sys.exit(f"{name}: {figures}, but {next(iter(found))}: {expected}")


def line(row: Row, best: dict[str, dict[str, Any]]) -> str:
    """A line of the table; what a missing peer would say is left open."""
    ours = best[row.ours]
    reach = [f"≤ {most:g} × {name}" for name, most in row.peers.items() if math.isfinite(most)]
    reached: list[bool | None] = []
    beside = []
    for name, most in row.peers.items():
        ratio = ours["seconds"] / best[name]["seconds"] if name in best else None
        reached.append(None if ratio is None or most == math.inf else ratio <= most)
        beside.append(f"{name} missing" if ratio is None else f"{ratio:.2f} × {name} ({_told(best[name])})")
    for unit, most in (("seconds", row.seconds), ("megabytes", row.megabytes)):
        if math.isfinite(most):
            reach.append(f"≤ {most:g} {'s' if unit == 'seconds' else 'MB'}")
            reached.append(ours[unit] <= most)
    said = "**no**" if False in reached else "–" if None in reached or not reached else "yes"
    return f"| {row.work} | {', '.join(reach) or '–'} | {_told(ours)} | {'; '.join(beside) or '–'} | {said} |"


def _told(found: dict[str, Any]) -> str:
    seconds = found["seconds"]
    return (f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e3:.2f} ms") + f", {found['megabytes']:.0f} MB"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)} (all but large)")
    for name, default in (("queries", 6980), ("depth", 1000), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--quick", action="store_true")
    for name in ("child", "prepare", "folder"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        vars(given).update(QUICK)
    if given.child or given.prepare:
        folder = Path(given.folder)
        if given.prepare:
            prepare(given.prepare, folder, given.queries, given.depth)
        else:
            print(json.dumps(child(given.child, folder, given.queries, given.depth)))
        return
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print(f"{given.queries:,} queries × {given.depth:,} passages, {given.rounds} rounds\n")
    print("| work | reach | measured | beside it | reached |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for part in given.parts or [name for name in PARTS if name != "large"]:
            for text in rows(part, Path(folder), given):
                print(text, flush=True)


if __name__ == "__main__":
    main()
