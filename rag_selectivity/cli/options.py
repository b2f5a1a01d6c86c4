"""The options that several commands share, each defined once, with the panel of the help that it stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import rag_selectivity as rs
from rag_selectivity.cli.help import choices
from rag_selectivity.cli.inputs import Readable, clusters_of, corpus_ids, corpus_size_of
from rag_selectivity.cli.output import Format
from rag_selectivity.cli.settings import Setting
from rag_selectivity.cli.writable import Writable
from rag_selectivity.tables.grades import SCALES

INPUT, MEASURES, EDGES, INTERVALS, GATES, OUTPUT = "Data", "Measures", "Rules", "Intervals", "Gates", "Output"
#: Panels that one or two commands have.
JUDGE, TESTS, PLANNING, BUDGET = "Judge", "Tests", "Number of queries", "Budget"
EVERY_COMMAND = "Every command"
#: Panels in the order of a help; what is in none of them (arguments) stands above them.
PANELS = (INPUT, JUDGE, MEASURES, EDGES, TESTS, PLANNING, INTERVALS, BUDGET, GATES, OUTPUT, EVERY_COMMAND)


def option(
    panel: str,
    metavar: str,
    help: str,
    *names: str,
    default: Any = ...,
    completed: Callable[[str], list[str]] | None = None,
) -> Any:
    """An option of a panel, as the default of a parameter, or in its annotation.

    Without `default`, that of the option is None, or False for a flag. `completed` gives what a shell completes a
    beginning to.
    """
    return typer.Option(default, *names, metavar=metavar, help=help, rich_help_panel=panel, autocompletion=completed)


def measures_from(beginning: str) -> list[str]:
    """The names of measures with a beginning, in upper or lower case."""
    from rag_selectivity.measures import REGISTRY

    return [name for name in REGISTRY if name.casefold().startswith(beginning.casefold())]


def argument(metavar: str, help: str, *, default: Any = ...) -> Any:
    """An argument, which is needed unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help)


def input_file(help: str, panel: str = INPUT, metavar: str = "FILE") -> Any:
    """An option that names a file to read; `-` is standard input."""
    return option(panel, Readable(metavar), help)


def setting(section: str, help: str) -> Setting:
    """What has a key in selectivity.toml and no option, as an annotation."""
    return Setting(section, help)


def flag(panel: str, name: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(..., name, help=help, rich_help_panel=panel)


# -- input ------------------------------------------------------------------------------------------------

FilesArgument = Annotated[
    list[str] | None,
    argument(
        Readable("FILE"),
        "Labels (TREC, JSONL, CSV or Parquet file, BEIR folder, label store), then runs: FILE or NAME=FILE (default: "
        "qrels and runs of selectivity.toml).",
    ),
]
RunsArgument = Annotated[
    list[str] | None,
    argument(Readable("FILE"), "Runs: FILE or NAME=FILE (default: runs of selectivity.toml)."),
]
BaselineOption = Annotated[str | None, option(INPUT, "NAME", "Run that the others are compared with.")]
HumanOption = Annotated[
    Path | None,
    input_file("Labels by people of some pairs of the labels (a file or a label store), to calibrate the figures."),
]
PoolOption = Annotated[
    list[str] | None,
    input_file(
        "Candidates before selection: FILE for all runs, NAME=FILE for one run. Several are fused. Repeat for more."
    ),
]
SizeOption = Annotated[
    str | None, input_file("Passages in the corpus: a number, or a table of query_id and corpus_size.", metavar="N")
]
TokensOption = Annotated[
    Path | None,
    input_file("Table of passage_id and tokens."),
]
CostsOption = Annotated[
    list[str] | None,
    input_file(
        "Measured tokens, milliseconds and price by query_id, or a trace: FILE or NAME=FILE of a run. Repeat for more."
    ),
]
QueryTextsOption = Annotated[Path | None, input_file("Texts of the queries: JSONL, TSV, CSV or Parquet.")]
JudgeOption = Annotated[
    list[str] | None,
    option(INPUT, "NAME", "Judge whose labels count (default: the median of all). Repeat for more.", "--judge"),
]
PassageTextsOption = Annotated[Path | None, input_file("Texts of the passages: JSONL, TSV, CSV or Parquet.")]
GradeMapOption = Annotated[str | None, option(INPUT, "MAP", "New grade for each grade, as in 0:1,1:3,2:4,3:5.")]
IdsOption = Annotated[
    str | None,
    option(
        INPUT,
        "FORM",
        "Form of all ids, if labels and run write them differently: strip, nfc, casefold, number (0012 as 12), name "
        "(docs/12.txt#0 as 12), prefix=TEXT, suffix=TEXT, or several, as in strip,casefold. `exact` accepts a run "
        "without a labelled passage.",
    ),
]


@dataclass(frozen=True)
class LabelForm:
    """How labels are read."""

    qrels_format: Annotated[str | None, setting("data", "Format of the labels, where content and suffix hide it.")] = (
        None
    )
    grade_map: GradeMapOption = None
    judge: JudgeOption = None
    ids: IdsOption = None


@dataclass(frozen=True)
class LabelSettings:
    """How labels are read, where that is asked for seldom."""

    grade_map: Annotated[str | None, setting("data", "New grade for each grade, as in 0:1,1:3,2:4,3:5.")] = None
    judge: Annotated[list[str] | None, setting("data", "Judges whose labels count (default: the median of all).")] = (
        None
    )


@dataclass(frozen=True)
class CorpusGiven:
    """What is known of the corpus."""

    corpus_size: SizeOption = None
    corpus: Path | None = input_file(
        "Corpus (JSONL, CSV or Parquet with _id): gives the corpus size and checks passage ids."
    )
    passages_of: Annotated[
        Path | None, setting("data", "Table of document_id and passages, if labels and runs name documents.")
    ] = None

    def given(self) -> dict[str, Any]:
        """As `evaluate` takes it."""
        size, ids = corpus_size_of(self.corpus_size), corpus_ids(self.corpus)
        return {"corpus_size": size, "corpus": ids, "passages_of": self.passages_of}


KOption = Annotated[
    str | None,
    option(
        MEASURES,
        "K",
        "Passages that the LLM is given in production: the depth of the decision; auto advises one (default: the one "
        "of --depths, else auto).",
        "--k",
    ),
]


# -- answers ----------------------------------------------------------------------------------------------

ScoresOption = Annotated[
    Path,
    input_file(
        "Scores of answers: table of query_id, run (if there are several), k (passages in the prompt) and score."
    ),
]
ScoreColumnOption = Annotated[
    str | None, option(INPUT, "NAME", "Column of the scores, as answer_correctness (default: score).")
]
ScoreRangeOption = Annotated[
    str | None, option(INPUT, "LOW,HIGH", "Lowest and highest possible score, as in 1,5; others are an error.")
]

# -- measures ---------------------------------------------------------------------------------------------

MeasureOption = Annotated[
    list[str] | None,
    option(
        MEASURES,
        "NAME",
        "Measure, as in BoR or BoR(rel=4)@10. Repeat for more. `rag-selectivity explain` lists all.",
        completed=measures_from,
    ),
]
ScaleOption = Annotated[
    str | None, option(MEASURES, "NAME", f"Scale of grades other than 0 and 1: {choices(SCALES)} (1 to 5).")
]
RelOption = Annotated[
    int | None, option(MEASURES, "GRADE", "Lowest grade that counts as relevant (default: that of the scale).")
]
HitsOption = Annotated[int | None, option(MEASURES, "M", "Relevant passages that make a success (default: 1).", "-m")]
ByOption = Annotated[
    list[str] | None,
    input_file(
        "Figures for groups of queries: table of query_id and columns, n5 (decisive passages, grade 5) or R (relevant "
        "passages). Repeat for more.",
        MEASURES,
    ),
]

# -- controls ---------------------------------------------------------------------------------------------

ShowBitsOption = Annotated[
    float | None,
    option(PLANNING, "BITS", "Say how many --controls, or how many queries, this many bits over random need."),
]
ShowKOption = Annotated[int, option(PLANNING, "K", "Depth of the bits over random that --controls can show.")]

# -- edges ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """What happens at the edges; what is None is as the policy has it."""

    policy: Annotated[str, setting("rules", "Set of rules that the others change: default or trec_eval.")] = "default"
    unjudged: Annotated[
        str | None, setting("rules", "Passage without a label: ignore (default), worst, condense or error.")
    ] = None
    short_lists: Annotated[
        str | None,
        setting("rules", "List shorter than K: requested (default) counts K passages, returned those in the list."),
    ] = None
    order: Annotated[str | None, setting("rules", "Order of a run: score (default), or rank as in the file.")] = None
    ties: Annotated[str | None, setting("rules", "Equal scores: docid_descending (default) or as_given.")] = None
    missing_query: Annotated[
        str | None, setting("rules", "Query without a list in the run: fail (default), skip or error.")
    ] = None
    duplicates: Annotated[str | None, setting("rules", "Passage twice in a list: count_once, drop or error.")] = None
    exclude_self: Annotated[
        bool, setting("rules", "Leave out the passage that has the id of its query, as for ArguAna.")
    ] = False

    def chosen(self) -> dict[str, Any]:
        """The policy, and the rules that were chosen one by one, by their names in `Policy`."""
        return {name: rule for name, rule in asdict(self).items() if rule is not None and rule is not False}


# -- intervals --------------------------------------------------------------------------------------------

ResamplesOption = Annotated[int, option(INTERVALS, "COUNT", "Bootstrap resamples.")]
SeedOption = Annotated[int, option(INTERVALS, "N", "Seed of everything drawn at random.")]
LevelOption = Annotated[float, option(INTERVALS, "SHARE", "Confidence level of the intervals.")]


@dataclass(frozen=True)
class Drawing:
    """How intervals are made, but for the number of resamples."""

    seed: Annotated[int, setting("intervals", "Seed of everything drawn at random.")] = 7
    level: Annotated[float, setting("intervals", "Confidence level of the intervals.")] = 0.95
    clusters: Annotated[
        Path | None, setting("intervals", "Table of query_id and cluster, if queries belong together.")
    ] = None

    def bootstrap(self, resamples: int, clusters: Mapping[str, str] | None = None) -> rs.Bootstrap:
        """As a function takes it; `clusters` are those of queries for which there is no table."""
        return rs.Bootstrap(resamples, self.seed, self.level, clusters_of(self.clusters) or clusters)


# -- gates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gating:
    """Conditions that make a command exit with 1."""

    fail_if: list[str] | None = option(
        GATES,
        "TEXT",
        "Exit with 1 if this holds: 'MEASURE@10 < .8', 'low(MEASURE@10) < .8', 'drop(MEASURE@10) > .02' (against "
        "--against), 'caveats >= strong'. Repeat for more.",
    )
    against: Path | None = input_file(
        "Report saved as JSON, for drop(…), made with the same labels, rules and judge.", GATES
    )
    on: Annotated[
        str, setting("gates", "Queries to compare with --against: all (default), or shared (with the same labels).")
    ] = "all"


# -- output -----------------------------------------------------------------------------------------------

FormatOption = Annotated[
    Format | None, option(OUTPUT, "FORMAT", "Format: table (default), json, csv, markdown or latex.", "--format")
]
TableFormatOption = Annotated[
    Format | None, option(OUTPUT, "FORMAT", "Format: table (default), json, csv or markdown.", "--format")
]


def output_file(*suffixes: str) -> Any:
    """The option that names the file to write, and the suffixes that set its format."""
    metavar = Writable.by_suffix(*suffixes)
    text = f"File to write: {choices(suffixes)}. Default: standard output."
    return option(OUTPUT, metavar, text, "--output", "-o")


_OF_TABLES = (".txt", ".json", ".csv", ".md")
OutputOption = Annotated[Path | None, output_file(*_OF_TABLES)]
ReportOutputOption = Annotated[Path | None, output_file(".html", *_OF_TABLES, ".tex")]
TextOrJsonOutputOption = Annotated[Path | None, output_file(".txt", ".json")]
TextOrJsonOption = Annotated[Format | None, option(OUTPUT, "FORMAT", "Format: table (default) or json.", "--format")]
DetailsOption = Annotated[
    bool, flag(OUTPUT, "--details", "Print every table, interval and note below the first screen. A file has them.")
]
