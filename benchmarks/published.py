"""The figures that the sources publish, computed again, beside ours, with the difference.

    python benchmarks/published.py [DATA] [--markdown] [--write]

DATA is the folder of the public test collections (scifact/, golden/, trec/); without it the rows that need them are not
run. Exits with 1 if a row that should agree does not, or if a row agrees although a reason is given why it cannot.
Needs `pip install 'rag-selectivity[demo,judge]'`.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.published_claims import NOT_REBUILT, SOURCES, Claim, Row, Source

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "published.md"
BEGIN, END = "<!-- begin: made by benchmarks/published.py -->", "<!-- end -->"
NO_DATA = Path("no-data")


def claims_of(source: Source, data: Path) -> Sequence[Claim]:
    """The claims of a source, with those that are read from DATA."""
    return (*source.claims, *(source.more(data) if source.more else ()))


def row_of(claim: Claim, data: Path) -> Row:
    """A claim beside what rag-selectivity computes."""
    there = all((data / name).exists() for name in claim.needs)
    return Row(claim, claim.ours(data) if there else None)


def verdict(row: Row) -> str:
    """Whether a row agrees, in a word or two."""
    if row.ours is None:
        return "not run: needs " + ", ".join(row.claim.needs)
    if not row.right:
        return "AGREES, THOUGH IT SHOULD NOT" if row.agrees else "DOES NOT AGREE"
    return "yes" if row.agrees else "no"


def remarks_of(rows: Sequence[Row]) -> list[str]:
    """The reasons and notes of some rows, each once, in order."""
    return list(dict.fromkeys(remark for row in rows if (remark := row.claim.differs or row.claim.note)))


def markdown_row(row: Row, remarks: Sequence[str]) -> str:
    """A line of the table; the number leads to a remark below it."""
    remark = row.claim.differs or row.claim.note
    said = verdict(row) + (f" ({remarks.index(remark) + 1})" if remark else "")
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


def paragraph(words: str, indent: int = 0) -> str:
    """Text in lines of the width that the pages have; all but the first are indented."""
    later = " " * indent
    return textwrap.fill(words, 119, subsequent_indent=later, break_on_hyphens=False, break_long_words=False)


def markdown(tables: Sequence[tuple[Source, Sequence[Row]]]) -> Iterator[str]:
    """The tables of the page, a section for each source."""
    every = [row for _, rows in tables for row in rows]
    beside = sum(not row.claim.counts for row in every)
    yield paragraph(
        f"**{summary(every)}.** {beside} rows more are not counted: they explain a difference or are made by hand."
    )
    for source, rows in tables:
        remarks = remarks_of(rows)
        yield f"\n## {source.title}\n\n{paragraph(source.about)}\n"
        yield "| where | figure | published | ours | difference | agrees |"
        yield "| --- | --- | --- | --- | --- | --- |"
        yield from (markdown_row(row, remarks) for row in rows)
        if remarks:
            yield ""
        for number, remark in enumerate(remarks, 1):
            yield paragraph(f"{number}. {remark[0].upper()}{remark[1:]}.", indent=3)
    yield "\n## Not computed here\n\n| source | figure | why | how, with the data |\n| --- | --- | --- | --- |"
    yield from (f"| {each.source} | {each.what} | {each.why} | {each.how} |" for each in NOT_REBUILT)


def text(tables: Sequence[tuple[Source, Sequence[Row]]]) -> Iterator[str]:
    """The tables for a terminal."""
    for source, rows in tables:
        yield f"\n{source.title}"
        for row in rows:
            name = f"{row.claim.where}: {row.claim.what}"
            yield f"  {name:86} {row.claim.published:>20} {row.shown:>24} {row.difference:>12}  {verdict(row)}"
            if row.claim.differs:
                yield f"      {row.claim.differs}"
    yield "\nNot computed here"
    yield from (f"  {each.source}: {each.what}: {each.why}" for each in NOT_REBUILT)
    yield f"\n{summary([row for _, rows in tables for row in rows])}"


def page_with(made: str) -> str:
    """The page of the documentation with these tables."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute every claim and print the tables; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help="folder of the test collections")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the page")
    parser.add_argument("--write", action="store_true", help=f"write them into {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    if given.data is not None and not given.data.is_dir():
        parser.error(f"{given.data}: no such folder")
    data = given.data or NO_DATA
    tables = [(source, [row_of(claim, data) for claim in claims_of(source, data)]) for source in SOURCES]
    if given.write:
        PAGE.write_text(page_with("\n".join(markdown(tables))), encoding="utf-8")
    print("\n".join(markdown(tables) if given.markdown else text(tables)))
    return int(not all(row.right for _, rows in tables for row in rows))


if __name__ == "__main__":
    sys.exit(main())
