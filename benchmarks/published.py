"""The figures that the sources publish (`published.toml`), computed again, beside ours, with the difference.

    python benchmarks/published.py [DATA] [--write]

DATA is a folder of public data: `scifact/` (corpus, test queries and qrels of BEIR), `golden/` (`bor_log.jsonl` of the
tool bits-over-random, `udcg.json` of UDCG), and `trec/` (the qrels of MS MARCO's dev subset and of TREC DL 2019,
Anserini's BM25 run for the latter, and trec_eval's own test files). Without it the rows that need them are not run.
Exits with 1 if a row that should agree does not, or if a row agrees although a reason is given why it cannot.
Needs `pip install 'rag-selectivity[demo,judge]'`.
"""

import argparse
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.published_figures import TREC_EVAL, UDCG, Value, value

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "published.md"
BEGIN, END = "<!-- begin: made by benchmarks/published.py -->", "<!-- end -->"
NO_DATA = Path("no-data")
HEAD = "| where | figure | published | ours | difference | agrees |\n| --- | --- | --- | --- | --- | --- |"
#: The distance by which a decimal number as a float may miss a limit of rounding.
_FLOAT_SLACK = 1e-12
#: More decimals are not the same on every machine.
_MOST_DECIMALS = 14


@dataclass(frozen=True)
class Claim:
    """A figure that a source prints.

    Attributes
    ----------
    where, what : str
        The section, table or file of the source; which figure, with the inputs that are not in the data.
    published : str
        The figure as printed: its decimals say how it is rounded. A leading `~` says nothing, `≤` makes it a bound.
    ours : list
        The figure by rag-selectivity, as `published_figures.value` computes it.
    needs : sequence of str
        The files of DATA that it reads.
    differs, note : str
        Why it cannot agree (empty if it should); what a reader of a figure that agrees should know.
    within : float, optional
        How far it may be away instead of its rounding, for a figure that is drawn at random.
    counts : bool
        Whether it is a published figure of its own; not if it explains another row or was worked out by hand.
    """

    where: str
    what: str
    published: str
    ours: Any
    needs: Sequence[str] = ()
    differs: str = ""
    note: str = ""
    within: float | None = None
    counts: bool = True


@dataclass(frozen=True)
class Source:
    """A source with its claims; `more` names those that are read from DATA."""

    title: str
    about: str
    claims: tuple[Claim, ...]
    more: str = ""


@dataclass(frozen=True)
class NotRebuilt:
    """A published figure that is not computed here, why, and how it could be."""

    source: str
    what: str
    why: str
    how: str


@dataclass(frozen=True)
class Row:
    """A claim beside what is computed; `ours` is None if its data are not there."""

    claim: Claim
    ours: Value | None

    @property
    def agrees(self) -> bool:
        """Whether some value that rounds to the published one is ours; NaN never is."""
        if self.ours is None or isinstance(self.ours, str):
            return self.ours == self.claim.published
        low, high = self._ends()
        value, half = self._printed()
        half = (self.claim.within or half) + _FLOAT_SLACK
        return low <= value + half and (self.claim.published.startswith("≤") or high >= value - half)

    @property
    def right(self) -> bool:
        """Whether it agrees if it should, and does not if the claim says why it cannot."""
        return self.ours is None or self.agrees != bool(self.claim.differs)

    @property
    def difference(self) -> str:
        """Ours less the published figure, in the units in which it is printed; 0 if it lies between our two ends."""
        if self.ours is None or isinstance(self.ours, str) or self.claim.published.startswith("≤"):
            return ""
        low, high = self._ends()
        value, _ = self._printed()
        nearest = low if math.isnan(low) else min(max(value, low), high)
        text = f"{self._scaled(nearest - value):+.{self._more_decimals()}f}"
        return "0" if not float(text) else text.replace("-", "−")

    @property
    def shown(self) -> str:
        """Ours, with two decimals more than the published figure."""
        if self.ours is None:
            return "not run"
        if isinstance(self.ours, str):
            return self.ours
        low, high = (f"{self._scaled(end) + 0.0:.{self._more_decimals()}f}{self._unit()}" for end in self._ends())
        return low if low == high else f"{low} to {high}"

    @property
    def verdict(self) -> str:
        """Whether it agrees, in a word or two."""
        if self.ours is None:
            return "not run: needs " + ", ".join(self.claim.needs)
        if not self.right:
            return "AGREES, THOUGH IT SHOULD NOT" if self.agrees else "DOES NOT AGREE"
        return "yes" if self.agrees else "no"

    def _ends(self) -> tuple[float, float]:
        if self.ours is None or isinstance(self.ours, str):
            raise TypeError(f"{self.claim.what}: {self.ours!r} is no figure")
        return self.ours if isinstance(self.ours, tuple) else (self.ours, self.ours)

    def _printed(self) -> tuple[float, float]:
        """The published value and half a unit of its last decimal."""
        scale = 0.01 if self._unit() else 1.0
        return float(self._number()) * scale, 0.5 * 10.0 ** -self._decimals() * scale

    def _number(self) -> str:
        found = re.search(r"-?\d+(\.\d+)?", self.claim.published.replace("−", "-"))
        if found is None:
            raise ValueError(f"{self.claim.published!r} holds no number")
        return found[0]

    def _decimals(self) -> int:
        return len(self._number().partition(".")[2])

    def _more_decimals(self) -> int:
        return min(self._decimals() + 2, _MOST_DECIMALS)

    def _unit(self) -> str:
        return "%" if self.claim.published.endswith("%") else ""

    def _scaled(self, value: float) -> float:
        return value * 100 if self._unit() else value


def read() -> tuple[tuple[Source, ...], tuple[NotRebuilt, ...]]:
    """The sources and what is not computed here."""
    told = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    sources = (Source(**{**x, "claims": tuple(Claim(**claim) for claim in x["claims"])}) for x in told["source"])
    return tuple(sources), tuple(NotRebuilt(**each) for each in told["not_rebuilt"])


SOURCES, NOT_REBUILT = read()
#: What trec_eval calls these measures; P_5 and the like go by their depth, iprec_at_recall_0.10 by its level.
_NAMES = {"map": "AP", "recip_rank": "RR", "Rprec": "Rprec"}


def claims_of(source: Source, data: Path) -> Sequence[Claim]:
    """The claims of a source, with those that are read from DATA."""
    more = {"udcg": (UDCG, _of_udcg), "trec_eval": (TREC_EVAL[0], _of_trec_eval)}
    if not source.more or not (data / more[source.more][0]).exists():
        return source.claims
    file, make = more[source.more]
    return (*source.claims, *make((data / file).read_text(encoding="utf-8")))


def _of_udcg(text: str) -> Iterator[Claim]:
    """A claim for each output of the authors' tool, and one with another weight."""
    outputs = [(row["example_id"], *output) for row in json.loads(text) for output in row["udcg"].items()]
    for example, model, printed in outputs:
        where = f"{example}, {model.rpartition('/')[2]}"
        yield Claim(where, "UDCG", repr(printed), ["udcg", example, model], (UDCG,))
    example, model, printed = outputs[0]
    differs = "the tool's weight of a distractor is .333, and ours by default; 1/3 is not what it computes"
    form, where = ["udcg", example, model, 1 / 3], f"{example}, {model.rpartition('/')[2]}"
    yield Claim(where, "UDCG with a weight of 1/3", repr(printed), form, (UDCG,), differs=differs, counts=False)


def _of_trec_eval(text: str) -> Iterator[Claim]:
    """A claim for each line of trec_eval's own output that has a measure here."""
    for name, _, printed in (line.split() for line in text.splitlines()):
        stem, _, at = name.rpartition("_")
        level = f"IPrec(rounding=nearest)@{float(at):g}" if stem == "iprec_at_recall" else None
        if (measure := level or (f"P@{at}" if stem == "P" else _NAMES.get(name))) is not None:
            yield Claim("out.test", name, printed, ["of_files", *TREC_EVAL[1:], measure], TREC_EVAL)


def row_of(claim: Claim, data: Path) -> Row:
    """A claim beside what rag-selectivity computes."""
    there = all((data / name).exists() for name in claim.needs)
    return Row(claim, value(claim.ours, data) if there else None)


def markdown_row(row: Row) -> str:
    """A line of a table, with the reason of a difference or what a reader should know."""
    remark = row.claim.differs or row.claim.note
    said = row.verdict + (f": {remark}" if remark else "")
    published = row.claim.published.replace("-", "−")
    cells = (row.claim.where, row.claim.what, published, row.shown.replace("-", "−"), row.difference, said)
    return "| " + " | ".join(cells) + " |"


def summary(rows: Sequence[Row]) -> str:
    """How many published figures agree, differ for a stated reason, are wrong, and were not run."""
    counted = [row for row in rows if row.claim.counts]
    run = [row for row in counted if row.ours is not None]
    parts = [
        f"{sum(row.agrees for row in run)} agree",
        f"{sum(row.right and not row.agrees for row in run)} differ for a stated reason",
        f"{sum(not row.right for row in run)} are wrong",
    ]
    if len(run) < len(counted):
        parts.append(f"{len(counted) - len(run)} were not run, for want of data")
    return f"{len(counted)} published figures: {', '.join(parts)}"


def markdown(tables: Sequence[tuple[Source, Sequence[Row]]]) -> Iterator[str]:
    """Every row, a section for each source, and how to compute what is not computed here."""
    for source, rows in tables:
        yield f"## {source.title}\n\n{source.about}\n\n{HEAD}"
        yield from map(markdown_row, rows)
        yield ""
    yield "| not computed here | figure | how, with the data |\n| --- | --- | --- |"
    yield from (f"| {each.source} | {each.what} | {each.how} |" for each in NOT_REBUILT)


def digest(tables: Sequence[tuple[Source, Sequence[Row]]]) -> Iterator[str]:
    """What the page shows: the counts, and the rows that differ."""
    yield f"**{summary([row for _, rows in tables for row in rows])}.**\n"
    yield "| source | figures | agree |\n| --- | --- | --- |"
    for source, rows in tables:
        counted = [row for row in rows if row.claim.counts]
        yield f"| {source.title} | {len(counted)} | {sum(row.agrees for row in counted)} |"
    yield "\n## What differs\n\n| source | figure | published | ours | why |\n| --- | --- | --- | --- | --- |"
    before = ""
    for source, row in ((source, row) for source, rows in tables for row in rows if row.claim.differs):
        if row.claim.counts:
            why = "the same" if row.claim.differs == before else row.claim.differs
            yield f"| {source.title} | {row.claim.what} | {row.claim.published} | {row.shown} | {why} |"
            before = row.claim.differs


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute every claim and print the tables; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help="folder of the test collections")
    parser.add_argument("--write", action="store_true", help=f"write the summary into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    if given.data is not None and not given.data.is_dir():
        parser.error(f"{given.data}: no such folder")
    data = given.data or NO_DATA
    tables = [(source, [row_of(claim, data) for claim in claims_of(source, data)]) for source in SOURCES]
    made = "\n".join(digest(tables))
    if given.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(*markdown(tables), "", made, sep="\n")
    return int(not all(row.right for _, rows in tables for row in rows))


if __name__ == "__main__":
    sys.exit(main())
