"""The demonstration: three retrievers, what their labels are worth, and the 99 % success paradox, on the sample."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rag_selectivity.advice import decide
from rag_selectivity.errors import needing
from rag_selectivity.evaluation.evaluate import evaluate
from rag_selectivity.measures.chance import regime
from rag_selectivity.render.blocks import Block, Heading, Note, Table
from rag_selectivity.render.first_screen import first_screen
from rag_selectivity.render.writers import text_of
from rag_selectivity.results.report import Report, Steps
from rag_selectivity.sample.folder import write_sample
from rag_selectivity.sample.judges import dice_grade, first_grade, write_store
from rag_selectivity.sample.rows import expected, graded_pairs, texts
from rag_selectivity.wording import ends_text, number, percent

RUNS = ("bm25", "dense", "reranked")
K = 10
#: The depths of the paradox; the sample's runs are shorter, so BM25 searches again.
DEPTHS = (K, 50, 500)
#: The run whose labels are looked at; the judges, with how each grades, and the store of all that it graded.
_JUDGED_RUN = "reranked"
_JUDGES = {"chat-model": (first_grade, "labels.db"), "dice": (dice_grade, "dice.db")}


@dataclass(frozen=True, slots=True)
class Demo:
    """What the demonstration measures.

    Attributes
    ----------
    runs : Report
        BM25, dense and reranked with the chat model's labels, and the decision at K = 10.
    judges : {judge: (Report, Report)}
        The reranked run with the labels of the chat model and of a judge that rolls dice, without and with the random
        passages that the same judge graded.
    sparse, dense : Report
        BM25 with one relevant passage a query, and with all passages of a module relevant.
    page : str
        The HTML page of the three runs.
    """

    runs: Report
    judges: Mapping[str, tuple[Report, Report]]
    sparse: Report
    dense: Report
    page: str

    def text(self, *, ruled: bool = True) -> str:
        """What is measured, in words and tables of 80 columns."""
        title = f"1. Three retrievers: {len(expected())} questions, {len(texts('corpus.jsonl')):,} passages"
        blocks = [Heading(title), *first_screen(self.runs).blocks(), *self._labels(), *self._paradox()]
        return text_of(blocks, ruled=ruled)

    def _labels(self) -> list[Block]:
        key = f"BoR@{K}"
        rows, told = [], []
        for judge, reports in self.judges.items():
            without, controlled = (report[key] for report in reports)
            figures = (f"{number(each.value)}{ends_text(each.low, each.high)}" for each in (without, controlled))
            rows.append([judge, *figures])
            shown = f"nothing is left of {number(without.value)} bits once this judge has graded random passages too"
            if controlled.low > 0:
                shown = "retrieval beats a random draw, by this judge's grades; no person has checked them"
            told.append(Note(f"{judge}: {shown}."))
        return [
            Heading(f"2. What the labels are worth: {key} of {_JUDGED_RUN}, in bits"),
            Table(["judge", "graded: retrieved passages", "and random passages"], rows, breaks=False),
            *told,
        ]

    def _paradox(self) -> list[Block]:
        rows = []
        for depth in DEPTHS:
            cells = [str(depth)]
            for report in (self.sparse, self.dense):
                chance = report[f"RandomSuccess@{depth}"].value
                success, bits = report[f"Success@{depth}"].value, report[f"BoR@{depth}"].value
                cells += [percent(success), percent(chance), f"{bits:.2f}"]
            rows.append(cells)
        header = ["K", "one relevant: success", "random", "BoR", "many relevant: success", "random", "BoR"]
        return [
            Heading("3. The 99 % paradox: BM25, one relevant passage a question or a whole module"),
            Table(header, rows, breaks=False),
            Note(self.meaning()),
        ]

    def meaning(self) -> str:
        """What the paradox's table shows. A comparison with chance is made only if BoR's interval contains 0."""
        first, last = K, DEPTHS[-1]
        sparse, dense = (
            {key: each.value for key, each in report.runs["bm25"].estimates.items()}
            for report in (self.sparse, self.dense)
        )
        bits, lucky = self.dense[f"BoR@{last}"], dense[f"RandomSuccess@{last}"]
        luck = ", which can be luck" if bits.low <= 0 <= bits.high else ""
        return (
            f"Many relevant passages: from K = {first} to {last}, success climbs from "
            f"{percent(dense[f'Success@{first}'])} to {percent(dense[f'Success@{last}'])}. But {last} random passages "
            f"succeed in {percent(lucky)} of the queries ({regime(lucky)}), so BoR falls from "
            f"{dense[f'BoR@{first}']:.2f} to {bits.value:.2f} bits{luck}. One relevant passage: a random draw of "
            f"{first} holds it once in {1 / sparse[f'RandomSuccess@{first}']:,.0f} times. The same lists succeed in "
            f"{percent(sparse[f'Success@{first}'])} of the queries: {sparse[f'BoR@{first}']:.2f} bits, of "
            f"{sparse[f'BoR_max@{first}']:.2f} at most."
        )


def run_demo() -> Demo:
    """Measure everything, on the sample data set. The figures are the same at each call."""
    with needing("jinja2 and matplotlib", "demo", "the demo"):
        import matplotlib  # noqa: F401 - before the work; the page asks for it at the end

        from rag_selectivity.render.html import to_html
    with TemporaryDirectory() as name:
        folder = write_sample(Path(name) / "sample")[0].parent
        runs = {run: folder / f"{run}.trec" for run in RUNS}
        size = len(names := list(texts("corpus.jsonl")))
        labels, pool = folder / "labels.db", folder / "candidates.trec"
        report = evaluate(labels, runs, corpus_size=size, pool=pool, depths=[5, K, 20])
        # What the steps name are files that `demo --write try` leaves.
        known: Any = {"labels": "try/labels.db", "queries": "try/queries.jsonl", "corpus": "try/corpus.jsonl"}
        steps = Steps(files=[f"try/{run}.trec" for run in RUNS], as_commands=True, **known)
        report = replace(report, steps=steps)
        report = report.with_decision(decide(report, k=K))
        shown = {"queries": texts("queries.jsonl"), "corpus": texts("corpus.jsonl"), "qrels": labels, "runs": runs}
        page = to_html(report, title="Three retrievers over Python's documentation", **shown)
        options: dict[str, Any] = {"corpus_size": size, "depths": [K], "measures": ["BoR", "RA-nWG", "Harm"]}
        of_pool = [pair for pair in graded_pairs() if ":" in pair.drawn and not pair.drawn.startswith("tail")]
        judged = {_JUDGED_RUN: runs[_JUDGED_RUN]}
        judges = {}
        for judge, (grade, all_graded) in _JUDGES.items():
            pool_alone = Path(name) / f"{judge}.db"
            write_store(pool_alone, judge, grade, of_pool)
            judges[judge] = evaluate(pool_alone, judged, **options), evaluate(folder / all_graded, judged, **options)
    lists, wanted = _searched(DEPTHS[-1]), expected()
    sparse, dense = (
        evaluate(expected_ids, {"bm25": lists}, corpus_size=size, depths=DEPTHS, measures=["default", "RandomSuccess"])
        for expected_ids in (
            {query: [passage] for query, passage in wanted.items()},
            {query: [name for name in names if name.split(".")[0] == p.split(".")[0]] for query, p in wanted.items()},
        )
    )
    return Demo(report, judges, sparse, dense, page)


def _searched(depth: int) -> dict[str, list[str]]:
    """BM25's lists for the sample's questions, deeper than the sample has them."""
    with needing("bm25s", "demo", "the demo"):
        import bm25s
    passages, questions = texts("corpus.jsonl"), texts("queries.jsonl")
    names, stop = list(passages), {"stopwords": "en", "show_progress": False}
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(list(passages.values()), **stop), show_progress=False)
    asked = bm25s.tokenize(list(questions.values()), **stop, return_ids=False)
    found, _ = retriever.retrieve(asked, k=depth, show_progress=False, sorted=True)
    return {query: [names[int(place)] for place in row] for query, row in zip(questions, found, strict=True)}
