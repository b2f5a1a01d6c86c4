"""The commands: evaluate, plan, audit, demo."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_selectivity.errors import InputError, SelectivityError, SelectivityWarning
from rag_selectivity.evaluation import evaluate as evaluate_runs
from rag_selectivity.judged import whole_count
from rag_selectivity.measures import REGISTRY, parse_measure
from rag_selectivity.measures.base import explain, summary
from rag_selectivity.planning import audit as audit_log
from rag_selectivity.planning import plan as plan_depths
from rag_selectivity.policy import POLICIES
from rag_selectivity.qrels import Qrels
from rag_selectivity.report.report import Report, write_whole
from rag_selectivity.report.tables import align, markdown, number
from rag_selectivity.scales import SCALES, scale_named
from rag_selectivity.statistics.bootstrap import Bootstrap

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What your retrieval is really worth: how many bits better than a random draw.",
)


class Format(StrEnum):
    """How to print a result."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


FormatOption = Annotated[Format | None, typer.Option("--format", help="Default: a table.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file; its suffix is the format.")]


@app.command()
def evaluate(
    qrels: Annotated[Path, typer.Option(help="Judgments: TREC, BEIR folder, JSONL, CSV, Parquet.")],
    run: Annotated[list[str], typer.Option(help="A run file, or NAME=FILE; may be repeated.")],
    pool: Annotated[
        list[str] | None, typer.Option(help="Candidates before selection: FILE for all runs, or NAME=FILE for one.")
    ] = None,
    corpus_size: Annotated[
        str | None, typer.Option(help="N: a number, or a table of query_id and corpus_size.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="The corpus (JSONL with _id, …): gives N, checks ids.")] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help=f"May be repeated: NAME or NAME(rel=…)@K of {', '.join(REGISTRY)}."),
    ] = None,
    depths: Annotated[str | None, typer.Option(help="K's, as in 1,5,10. Default: 1,2,5,10,… 1000.")] = None,
    scale: Annotated[str, typer.Option(help=" or ".join(SCALES))] = "trec",
    grade_map: Annotated[str | None, typer.Option(help="Carry grades over, as in 0:1,1:3,2:4,3:5.")] = None,
    policy: Annotated[str, typer.Option(help=" or ".join(POLICIES))] = "default",
    order: Annotated[str | None, typer.Option(help="score (default), or rank: trust the file's order.")] = None,
    ties: Annotated[str | None, typer.Option(help="docid_descending (default) or as_given.")] = None,
    missing_query: Annotated[str | None, typer.Option(help="fail (default), skip or error.")] = None,
    no_relevant: Annotated[str | None, typer.Option(help="skip (default) or error.")] = None,
    duplicates: Annotated[str | None, typer.Option(help="count_once (default), drop or error.")] = None,
    unjudged: Annotated[str | None, typer.Option(help="ignore (default), worst, condense or error.")] = None,
    depth: Annotated[str | None, typer.Option(help="Lists shorter than K: requested (default) or returned.")] = None,
    qrels_format: Annotated[str | None, typer.Option(help="Where content and suffix mislead.")] = None,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap; 0 leaves the intervals out.")] = 5000,
    seed: int = 7,
    level: float = 0.95,
    format: FormatOption = None,
    output: OutputOption = None,
    per_query: Annotated[Path | None, typer.Option(help="Figures of every query: .csv, .jsonl or .parquet.")] = None,
) -> None:
    """Measure runs against judgments."""
    choices = {
        "order": order,
        "ties": ties,
        "missing_query": missing_query,
        "no_relevant": no_relevant,
        "duplicates": duplicates,
        "unjudged": unjudged,
        "depth": depth,
    }
    report = evaluate_runs(
        Qrels.read(qrels, format=qrels_format),
        _named_files(run),
        pool=_pools(pool or [], run),
        corpus_size=_corpus_size(corpus_size),
        corpus=_corpus_ids(corpus),
        measures=measure or None,
        depths=_numbers(depths, "--depths") if depths is not None else None,
        scale=scale,
        grade_map=grade_map,
        policy=policy,
        bootstrap=Bootstrap(resamples, seed, level) if resamples else None,
        **{name: value for name, value in choices.items() if value is not None},
    )
    if per_query is not None:
        from rag_selectivity.files.tabular import write_rows

        write_rows(per_query, report.per_query())
    _put(_report_text(report, _chosen(format, output)), output)


@app.command()
def plan(
    corpus_size: Annotated[int, typer.Option(help="N: passages, or tools.")],
    relevant: Annotated[str, typer.Option(help="R: a number, several as in 1,3,4, or a qrels file.")],
    depths: Annotated[str, typer.Option(help="K's, as in 5,20,58.")],
    m: Annotated[int, typer.Option("-m", help="Relevant ones that make a success.")] = 1,
    rel: Annotated[int | None, typer.Option(help="Lowest relevant grade of a qrels file.")] = None,
    scale: Annotated[str, typer.Option(help="Scale of a qrels file: " + " or ".join(SCALES))] = "trec",
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """What chance alone would achieve at each K, and the most that a retriever can show."""
    result = plan_depths(corpus_size, _relevant(relevant, rel, scale), _numbers(depths, "--depths"), m=m)
    _put(_rows_text(result, result["rows"], _chosen(format, output)), output)


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="JSONL, CSV or Parquet: N, K, R and hit for each query.")],
    map: Annotated[str | None, typer.Option(help="The log's names, as in N=corpus,K=shown,hit=ok,R=rel.")] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """Bits over Random of a production log that has counts and no ids."""
    result = audit_log(log, fields=_field_map(map))
    row = {key: value for key, value in result.items() if key not in ("schema", "reason")}
    _put(_rows_text(result, [row], _chosen(format, output)), output)


@app.command()
def measures(
    name: Annotated[str | None, typer.Argument(help="A measure to explain.")] = None,
    format: FormatOption = None,
    output: OutputOption = None,
) -> None:
    """List the measures, or explain one with a tiny worked example."""
    if name is not None:
        _put(explain(parse_measure(name)), output)
        return
    listed = [{"measure": cls.name, "definition": summary(cls)} for cls in REGISTRY.values()]
    match _chosen(format, output):
        case Format.json:
            text = json.dumps(listed, indent=2, ensure_ascii=False)
        case Format.csv:
            text = _csv(listed)
        case Format.markdown:
            text = markdown(list(listed[0]), [list(row.values()) for row in listed])
        case _:
            text = "\n".join(f"{row['measure']:14} {row['definition']}" for row in listed)
    _put(text, output)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the JSON and the plot.")] = Path(),
) -> None:
    """Show the 99 % success paradox on this machine: BM25 over Python's own docstrings."""
    from rag_selectivity.demo import run_demo, save_demo

    result = run_demo(progress=sys.stderr.isatty())
    typer.echo(_report_text(result.sparse, Format.table))
    typer.echo("\n" + _report_text(result.dense, Format.table))
    typer.echo("\n" + result.meaning())
    for path in save_demo(result, output):
        typer.echo(f"wrote {path}")


def run_command_line() -> None:
    """Run the app, with users' mistakes as one line and exit status 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except SelectivityError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise SystemExit(2) from None
    except BrokenPipeError:
        # The reader of the pipe has had enough; a second complaint at shutdown would follow.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, SelectivityWarning):
        typer.echo(f"warning: {message}", err=True)


def _named_files(runs: list[str]) -> dict[str, Path]:
    """`NAME=FILE`, or a file whose stem is the name."""
    named: dict[str, Path] = {}
    for text in runs:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).name.split(".")[0], text
        if not name or not path:
            raise InputError(f"--run {text!r} is neither FILE nor NAME=FILE")
        if name in named:
            raise InputError(f"two runs are called {name!r}; name them with --run NAME=FILE")
        named[name] = Path(path)
    return named


def _pools(pools: list[str], runs: list[str]) -> Path | dict[str, Path] | None:
    """One pool for all runs, or one for each that is named."""
    if len(pools) == 1 and ("=" not in pools[0] or Path(pools[0]).exists()):
        return Path(pools[0])
    named = _named_files(pools)
    for name in named.keys() - _named_files(runs).keys():
        raise InputError(f"--pool {name}={named[name]}: there is no run {name!r}")
    return named or None


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text!r} is not a list of whole numbers, as in 1,5,10") from None


def _corpus_size(text: str | None) -> int | dict[str, int] | None:
    if text is None:
        return None
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        pass
    from rag_selectivity.files import read_records
    from rag_selectivity.frames import QUERY_NAMES, SIZE_NAMES, find_column

    sizes = {}
    for line, row in read_records(text):
        query = find_column(list(row), QUERY_NAMES, "query", f"{text}:{line}")
        size = find_column(list(row), SIZE_NAMES, "corpus size", f"{text}:{line}")
        sizes[str(row[query])] = whole_count(row[size], f"{text}:{line}: {size}")
    return sizes


def _corpus_ids(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    from rag_selectivity.files import read_corpus_ids

    return list(read_corpus_ids(path))


def _relevant(text: str, rel: int | None, scale: str) -> list[int]:
    if Path(text).exists():
        qrels = Qrels.read(text)
        chosen_scale = scale_named(scale)
        qrels.check_scale(chosen_scale)
        threshold = chosen_scale.relevant_from if rel is None else rel
        return [sum(grade >= threshold for grade in qrels[query].values()) for query in qrels]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--relevant {text!r} is neither a number, a list of them, nor a qrels file") from None


def _field_map(text: str | None) -> dict[str, str]:
    fields = {}
    for part in text.split(",") if text else []:
        role, equals, column = part.partition("=")
        if not equals:
            raise InputError(f"--map {text!r}: {part!r} is not FIELD=COLUMN, as in N=corpus,K=shown")
        fields[role.strip()] = column.strip()
    return fields


def _chosen(format: Format | None, output: Path | None) -> Format:
    if format is not None or output is None:
        return format or Format.table
    by_suffix = {".json": Format.json, ".csv": Format.csv, ".md": Format.markdown}
    return by_suffix.get(output.suffix.lower(), Format.table)


def _report_text(report: Report, format: Format) -> str:
    match format:
        case Format.json:
            return report.to_json()
        case Format.csv:
            return _csv(report.rows())
        case Format.markdown:
            return report.to_markdown()
        case _:
            return report.to_text(ruled=sys.stdout.isatty())


def _rows_text(result: dict[str, Any], rows: list[dict[str, Any]], format: Format) -> str:
    if format is Format.json:
        return json.dumps(result, indent=2, allow_nan=False)
    if format is Format.csv:
        return _csv(rows)
    header = list(rows[0])
    cells = [[_cell(row[name]) for name in header] for row in rows]
    return markdown(header, cells) if format is Format.markdown else align(header, cells, ruled=sys.stdout.isatty())


def _cell(value: Any) -> str:
    return "–" if value is None else number(value) if isinstance(value, float) else str(value)


def _csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value != value else value for key, value in row.items()} for row in rows)
    return text.getvalue().rstrip("\n")


def _put(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text)
    else:
        write_whole(output, text + "\n")
