"""The options that several commands share, each defined once, with the panel of the help that it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import rag_selectivity as rs
from rag_selectivity.cli.help import choices
from rag_selectivity.cli.inputs import Readable, clusters_of, corpus_ids, corpus_size_of
from rag_selectivity.cli.output import Format
from rag_selectivity.cli.writable import Writable
from rag_selectivity.tables.grades import SCALES

#: As `rag_selectivity.advice.by_loss` has them, which is imported where depths are advised.
DEFAULT_MAX_K, DEFAULT_MAX_LOSS = 20, 0.02

INPUT, MEASURES, EDGES, INTERVALS, GATES, OUTPUT = "Input", "Measures", "Edges", "Intervals", "Gates", "Output"
#: Panels that one or two commands have.
JUDGE, TESTS, PLANNING, BUDGET, LIMITS, PAGE = "Judge", "Tests", "Number of queries", "Budget", "Limits", "Page"
EVERY_COMMAND = "Every command"
#: Panels in the order of a help; what is in none of them (arguments) stands above them.
PANELS = (INPUT, JUDGE, MEASURES, EDGES, TESTS, PLANNING, INTERVALS, BUDGET, LIMITS, GATES, PAGE, OUTPUT, EVERY_COMMAND)


def option(panel: str, metavar: str, help: str, *names: str, default: Any = ...) -> Any:
    """An option of a panel, as the default of a parameter, or in its annotation.

    Without `default`, that of the option is None, or False for a flag.
    """
    return typer.Option(default, *names, metavar=metavar, help=help, rich_help_panel=panel)


def argument(metavar: str, help: str, *, default: Any = ...) -> Any:
    """An argument, which is needed unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help)


def input_file(help: str, panel: str = INPUT, metavar: str = "FILE") -> Any:
    """An option that names a file to read; `-` is standard input."""
    return option(panel, Readable(metavar), help)


def flag(panel: str, name: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(..., name, help=help, rich_help_panel=panel)


# -- input ------------------------------------------------------------------------------------------------

QrelsOption = Annotated[Path, input_file("Labels: TREC, JSONL, CSV or Parquet file, BEIR folder, or label store.")]
QrelsFormatOption = Annotated[
    str | None, option(INPUT, "FORMAT", "Format of --qrels, if neither its content nor its suffix shows it: {formats}.")
]
RunOption = Annotated[list[str], input_file("Run: FILE or NAME=FILE. Repeat for more.")]
OptionalRunOption = Annotated[list[str] | None, input_file("Run: FILE or NAME=FILE. Repeat for more.")]
BaselineOption = Annotated[
    str | None, option(INPUT, "NAME", "Run that the others are compared with (default: the first).")
]
HumanOption = Annotated[
    Path | None,
    input_file("Labels by people of some pairs of --qrels (a file or a label store), to calibrate the figures."),
]
PoolOption = Annotated[
    list[str] | None,
    input_file(
        "Candidates before selection: FILE for all runs, NAME=FILE for one run. Several are fused. Repeat for more."
    ),
]
PoolDepthOption = Annotated[int | None, option(INPUT, "COUNT", "Ranks to take of each --pool (default: all).")]
SizeOption = Annotated[
    str | None, input_file("Passages in the corpus: a number, or a table of query_id and corpus_size.", metavar="N")
]
PassagesOfOption = Annotated[
    Path | None,
    input_file("Table of document_id and passages: how many chunks a document has, if labels and runs name documents."),
]
ControlsOption = Annotated[
    Path | None, input_file("Random controls: grades of random passages of the corpus by the judge of --qrels.")
]
TokensOption = Annotated[
    Path | None, input_file("Table of passage_id and tokens; with --tokenizer the corpus, with its texts.")
]
GroupsOption = Annotated[Path | None, input_file("Table of passage_id and group: passages that say the same.")]
TokenizerOption = Annotated[
    str | None,
    option(
        INPUT, "NAME", "Count the tokens of the texts in --tokens by MODULE:FUNCTION, or by `characters`: four a token."
    ),
]
CostsOption = Annotated[
    list[str] | None,
    input_file(
        "Measured tokens, milliseconds and price by query_id, or a trace: FILE or NAME=FILE of a run. Repeat for more."
    ),
]
CostMeasureOption = Annotated[
    str | None,
    option(
        MEASURES,
        "NAME",
        "Measure to compare costs with, as in Precision4+ (default: RA-nWG if measured, else Success).",
    ),
]
CostDepthsOption = Annotated[
    str | None,
    option(MEASURES, "K,K", "Further K at which runs are compared by their tokens, to find the cheapest of all."),
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

    qrels_format: QrelsFormatOption = None
    grade_map: GradeMapOption = None
    judge: JudgeOption = None
    ids: IdsOption = None


@dataclass(frozen=True)
class CorpusGiven:
    """What is known of the corpus."""

    corpus_size: SizeOption = None
    corpus: Path | None = input_file(
        "Corpus (JSONL, CSV or Parquet with _id): gives the corpus size and checks passage ids."
    )
    passages_of: PassagesOfOption = None

    def given(self) -> dict[str, Any]:
        """As `evaluate` takes it."""
        size, ids = corpus_size_of(self.corpus_size), corpus_ids(self.corpus)
        return {"corpus_size": size, "corpus": ids, "passages_of": self.passages_of}


KOption = Annotated[
    int | None,
    option(
        MEASURES,
        "K",
        "Passages that the LLM is given in production: the depth of the decision (default: the one of --depths if it "
        "has one, else the advised one).",
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
FoldsOption = Annotated[
    int, option(TESTS, "COUNT", "Folds of the queries; parameters are chosen on the others and judged on each.")
]
ScoreRangeOption = Annotated[
    str | None, option(INPUT, "LOW,HIGH", "Lowest and highest possible score, as in 1,5; others are an error.")
]

# -- measures ---------------------------------------------------------------------------------------------

MeasureOption = Annotated[
    list[str] | None,
    option(
        MEASURES, "NAME", "Measure, as in BoR or BoR(rel=4)@10. Repeat for more. `rag-selectivity explain` lists all."
    ),
]
ScaleOption = Annotated[
    str | None, option(MEASURES, "NAME", f"Scale of grades other than 0 and 1: {choices(SCALES)} (1 to 5).")
]
RelOption = Annotated[
    int | None, option(MEASURES, "GRADE", "Lowest grade that counts as relevant (default: that of the scale).")
]
HitsOption = Annotated[int | None, option(MEASURES, "M", "Relevant passages that make a success (default: 1).", "-m")]
MaxKOption = Annotated[
    int, option(MEASURES, "K", "Most passages that a prompt can show; smaller depths are compared with this one.")
]
MaxLossOption = Annotated[
    float, option(MEASURES, "SHARE", "Largest loss of the advised depth against --max-k; .02 is two percentage points.")
]

# -- controls ---------------------------------------------------------------------------------------------

ShowBitsOption = Annotated[
    float | None,
    option(PLANNING, "BITS", "Say how many --controls, or how many queries, this many bits over random need."),
]
ShowKOption = Annotated[int, option(PLANNING, "K", "Depth of the bits over random that --controls can show.")]

# -- edges ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MainRules:
    """What happens at the edges; what is None is as the policy has it."""

    policy: str = option(
        EDGES, "NAME", "Set of rules: {policies}. Each option below changes one of them.", default="default"
    )
    unjudged: str | None = option(EDGES, "RULE", "Passage without a label: ignore (default), worst, condense or error.")
    short_lists: str | None = option(
        EDGES, "RULE", "List shorter than K: requested (default) counts K passages, returned those in the list."
    )

    def chosen(self) -> dict[str, Any]:
        """The policy, and the rules that were chosen one by one, by their names in `Policy`."""
        return {name: rule for name, rule in asdict(self).items() if rule is not None and rule is not False}


@dataclass(frozen=True)
class Rules(MainRules):
    """Every rule of a run and its labels."""

    order: str | None = option(EDGES, "RULE", "Order of a run: score (default), or rank as in the file.")
    ties: str | None = option(EDGES, "RULE", "Equal scores: docid_descending (default) or as_given.")
    missing_query: str | None = option(EDGES, "RULE", "Query without a list in the run: fail (default), skip or error.")
    duplicates: str | None = option(EDGES, "RULE", "Passage twice in a list: count_once, drop or error.")


@dataclass(frozen=True)
class RulesAndSelf(Rules):
    """Rules, and whether a query finds its own passage."""

    exclude_self: bool = flag(
        EDGES, "--exclude-self", "Leave out the passage that has the id of its query, as for ArguAna."
    )


# -- intervals --------------------------------------------------------------------------------------------

ResamplesOption = Annotated[int, option(INTERVALS, "COUNT", "Bootstrap resamples.")]
SeedOption = Annotated[int, option(INTERVALS, "N", "Seed of everything drawn at random.")]
LevelOption = Annotated[float, option(INTERVALS, "SHARE", "Confidence level of the intervals.")]
ClustersOption = Annotated[
    Path | None, input_file("Table of query_id and cluster, if queries belong together.", INTERVALS)
]


@dataclass(frozen=True)
class Intervals:
    """How intervals are made."""

    resamples: ResamplesOption = 5000
    seed: SeedOption = 7
    level: LevelOption = 0.95
    clusters: ClustersOption = None

    def bootstrap(self, clusters: Mapping[str, str] | None = None) -> rs.Bootstrap:
        """As a function takes it; `clusters` are those of queries without --clusters."""
        return rs.Bootstrap(self.resamples, self.seed, self.level, clusters_of(self.clusters) or clusters)


# -- gates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gating:
    """Conditions that make a command exit with 1."""

    fail_if: list[str] | None = option(
        GATES,
        "TEXT",
        "Exit with 1 if this holds: 'MEASURE@10 < .8', 'low(MEASURE@10) < .8', 'shown(BoR@10) < 2'. Repeat for more.",
    )
    max_drop: list[str] | None = option(
        GATES,
        "TEXT",
        "Exit with 1 if a measure is worse than in --against by more than this: 'MEASURE@10:0.02'. "
        "'low(MEASURE@10):0.02' also fails if the interval allows a larger loss. Repeat for more.",
    )
    against: Path | None = input_file(
        "Report saved as JSON, for --max-drop, made with the same labels, rules and judge.", GATES
    )
    on: str | None = option(
        GATES,
        "NAME",
        "Queries to compare with --against: all (default), or shared (in both with the same labels or references).",
    )
    require_trust: str | None = option(
        GATES,
        "LEVEL",
        "Exit with 1 if a gated figure (without gates: any) has a caveat of this level or above: note, soft or strong.",
    )


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
LatexOutputOption = Annotated[Path | None, output_file(*_OF_TABLES, ".tex")]
TextOrJsonOutputOption = Annotated[Path | None, output_file(".txt", ".json")]
TextOrJsonOption = Annotated[Format | None, option(OUTPUT, "FORMAT", "Format: table (default) or json.", "--format")]
DetailsOption = Annotated[
    bool, flag(OUTPUT, "--details", "Print every table, interval and note below the first screen. A file has them.")
]
