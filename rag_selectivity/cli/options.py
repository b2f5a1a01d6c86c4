"""The options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import rag_selectivity as rs
from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.inputs import (
    corpus_size_of,
    labels_and_runs,
    named_files,
    runs_of,
    score_range_of,
    whole_numbers,
)
from rag_selectivity.cli.output import Format, Printer
from rag_selectivity.cli.parameters import Parsed

#: Depths, as in 1,5,10.
Depths = Annotated[list[int] | None, Parsed(whole_numbers)]
#: {name: file} of runs; `RunsOrSettings` are those of selectivity.toml if none are given.
Runs = Annotated[dict[str, Path] | None, Parsed(named_files, many=True)]
RunsOrSettings = Annotated[dict[str, Path] | None, Parsed(runs_of, many=True)]
#: The labels, and the runs.
LabelsAndRuns = Annotated[Any, Parsed(labels_and_runs, many=True)]
ScoreRange = Annotated[tuple[float, float] | None, Parsed(score_range_of)]
CorpusSize = Annotated[int | dict[str, int] | None, Parsed(corpus_size_of)]
Names = list[str] | None
Table = Annotated[Path | None, Writes(is_table=True)]


class Shared:
    """What these parameters mean in every command that has them and does not say otherwise.

    Arguments
    ---------
    files : FILE
        Labels (TREC, JSONL, CSV or Parquet file, BEIR folder, label store), then runs: FILE or NAME=FILE (default:
        qrels and runs of selectivity.toml).
    run : RUN
        Runs: FILE or NAME=FILE.
    store : STORE
        Label store.

    Data
    ----
    baseline : NAME
        Run that the others are compared with.
    human : FILE
        People's grades of some of the labelled pairs (a file or a label store), to calibrate the figures.
    pool : FILE
        What was found before reranking: FILE for all runs, NAME=FILE for one run. Several are merged. Repeat for more.
    tokens : FILE
        Table of passage_id and tokens; with data.tokenizer of the settings, the corpus with its texts.
    costs : FILE
        Measured tokens, milliseconds and price by query_id, or a trace: FILE or NAME=FILE of a run. Repeat for more.
    queries : FILE
        Texts of the queries: JSONL, TSV, CSV or Parquet.
    corpus : FILE
        Texts of the passages: JSONL, TSV, CSV or Parquet.
    judge : NAME
        Judge whose labels count (default: the median of all). Repeat for more.
    grade_map : MAP
        New grade for each grade, as in 0:1,1:3,2:4,3:5.
    scores : FILE
        Scores of answers: table of query_id, run (if there are several), k (passages in the prompt) and score.
    score_column : NAME
        Column of the scores, as answer_correctness (default: score).
    score_range : LOW,HIGH
        Lowest and highest possible score, as in 1,5; others are an error.

    Judge
    -----
    model : NAME
        Name of the model at the endpoint.
    rubric : FILE
        Rubric of your own, in TOML.

    Budget
    ------
    max_calls : COUNT
        Send at most this many requests.
    max_cost : AMOUNT
        Spend at most this much. Needs prices, or an endpoint that says what a request costs.
    concurrency : COUNT
        Most requests at the same time. A run begins with 1, then 4.

    [judge]
    -------
    max_tokens
        Spend at most this many tokens.
    price_in
        Price of a million prompt tokens.
    price_out
        Price of a million answer tokens.
    rpm
        Most requests in any 60 seconds.
    tpm
        Most tokens in any 60 seconds.
    max_answer_tokens
        Most tokens of an answer, reasoning included; after a cut answer, the limit is 4 times as high.
    timeout
        Longest time for a request.
    attempts
        Most requests for a call that fails for a temporary reason, such as a server error.
    max_wait
        Longest wait that the endpoint may ask for (Retry-After). After a longer one the run stops.

    Measures
    --------
    measure : NAME
        Measure, as in BoR or BoR(rel=4)@10. Repeat for more. `rag-selectivity explain` lists all.
    depths : K,K
        Depths, as in 1,5,10.
    k : K
        Passages that your LLM is given: the K of the five answers. auto advises one (default: that of --depths if it is
        one number, else auto).
    by : FILE
        Groups of queries to give figures for: a table of query_id and columns, n5 (by their decisive passages, grade 5)
        or R (by their relevant passages). Repeat for more.
    scale : NAME
        Scale of the grades, if they are not 0 and 1: utility (1 junk to 5 decisive) or trec (relevant from 1 up).
    rel : GRADE
        Lowest grade that counts as relevant (default: that of the scale).

    Intervals
    ---------
    resamples : COUNT
        Bootstrap resamples.
    seed : N
        Seed of everything drawn at random.
    level : SHARE
        Confidence level of the intervals.

    Output
    ------
    details
        Print every table, interval and note below the first screen; a file has them.
    """


# -- input ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelForm:
    """How labels are read.

    Data
    ----
    grade_map : MAP
        New grade for each grade, as in 0:1,1:3,2:4,3:5.
    judge : NAME
        Judge whose labels count (default: the median of all). Repeat for more.
    ids : FORM
        How to make ids alike that labels and runs write differently: strip, nfc, casefold, number (0012 as 12), name
        (docs/12.txt#0 as 12), prefix=TEXT, suffix=TEXT, or several, as in strip,casefold. `exact` accepts a run without
        a labelled passage.

    [data]
    ------
    qrels_format
        Format of the labels, where content and suffix hide it.
    """

    grade_map: str | None = None
    judge: Names = None
    ids: str | None = None
    qrels_format: str | None = None


@dataclass(frozen=True)
class CorpusGiven:
    """What is known of the corpus.

    Data
    ----
    corpus_size : N|FILE
        Passages in the corpus: a number, or a table of query_id and corpus_size.
    corpus : FILE
        Corpus (JSONL, CSV or Parquet with _id): counts its passages and checks the ids of the runs.

    [data]
    ------
    passages_of
        Table of document_id and passages, if labels and runs name documents.
    """

    corpus_size: CorpusSize = None
    corpus: Path | None = None
    passages_of: Path | None = None

    def given(self) -> dict[str, Any]:
        """As `evaluate` takes it."""
        from rag_selectivity.tables.small import read_ids

        return {**vars(self), "corpus": None if self.corpus is None else list(read_ids(self.corpus))}


# -- rules and intervals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """What happens at the edges; what is None is as the policy has it.

    [rules]
    -------
    policy
        Rules to begin with: default or trec_eval.
    unjudged
        Passage without a label: ignore (default), worst, condense or error.
    short_lists
        List shorter than K: requested (default) counts K passages, returned those in the list.
    order
        Order of a run: score (default), or rank as in the file.
    ties
        Equal scores: docid_descending (default) or as_given.
    missing_query
        Query without a list in the run: fail (default), skip or error.
    duplicates
        Passage twice in a list: count_once, drop or error.
    exclude_self
        Leave out the passage that has the id of its query, as for ArguAna.
    """

    policy: str = "default"
    unjudged: str | None = None
    short_lists: str | None = None
    order: str | None = None
    ties: str | None = None
    missing_query: str | None = None
    duplicates: str | None = None
    exclude_self: bool = False

    def chosen(self) -> dict[str, Any]:
        """The policy, and the rules that were chosen one by one, by their names in `Policy`."""
        return {name: rule for name, rule in asdict(self).items() if rule is not None and rule is not False}


@dataclass(frozen=True)
class Drawing:
    """How intervals are made, but for the number of resamples.

    [intervals]
    -----------
    seed
        Seed of everything drawn at random.
    level
        Confidence level of the intervals.
    clusters
        Table of query_id and cluster, if queries belong together.
    """

    seed: int = 7
    level: float = 0.95
    clusters: Path | None = None

    def bootstrap(self, resamples: int, clusters: Mapping[str, str] | None = None) -> rs.Bootstrap:
        """As a function takes it; `clusters` are those of queries for which there is no table."""
        from rag_selectivity.tables.small import per

        if self.clusters is not None:
            clusters = per("query", self.clusters, "cluster", str) or clusters
        return rs.Bootstrap(resamples, self.seed, self.level, clusters)


# -- gates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gating:
    """Conditions that make a command exit with 1.

    Gates
    -----
    fail_if : TEXT
        Exit with 1 if this holds: 'MEASURE@10 < .8', 'low(MEASURE@10) < .8', 'drop(MEASURE@10) > .02' (against
        --against), 'caveats >= strong'. Repeat for more.
    against : FILE
        Earlier report (JSON) to compare with, of the same labels, rules and judge.

    [gates]
    -------
    on
        Queries to compare with --against: all, or shared (with the same labels; the default of traces).
    """

    fail_if: Names = None
    against: Path | None = None
    on: str | None = None


# -- output -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Output(Printer):
    """A result with rows.

    Output
    ------
    format : FORMAT
        Format: table (default), json, csv or markdown.
    output : FILE, -o
        File to write: .txt, .json, .csv or .md. Default: standard output.
    """

    output: Annotated[Path | None, Writes((".txt", ".json", ".csv", ".md"))] = None


@dataclass(frozen=True)
class ReportOutput(Printer):
    """A report, which can be a page.

    Output
    ------
    format : FORMAT
        Format: table (default), json, csv, markdown or latex.
    output : FILE, -o
        File to write: .html, .txt, .json, .csv, .md or .tex. Default: standard output.
    """

    formats: ClassVar[tuple[Format, ...]] = tuple(Format)
    output: Annotated[Path | None, Writes((".html", ".txt", ".json", ".csv", ".md", ".tex"))] = None


@dataclass(frozen=True)
class TextOrJson(Printer):
    """A result without rows.

    Output
    ------
    format : FORMAT
        Format: table (default) or json.
    output : FILE, -o
        File to write: .txt or .json. Default: standard output.
    """

    formats: ClassVar[tuple[Format, ...]] = (Format.table, Format.json)
    output: Annotated[Path | None, Writes((".txt", ".json"))] = None
