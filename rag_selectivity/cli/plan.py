"""`rag-selectivity plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import labels_and_runs, labels_of
from rag_selectivity.cli.parameters import Parsed
from rag_selectivity.cli.settings import SETTINGS, refuse_typed
from rag_selectivity.errors import InputError
from rag_selectivity.tables.grades import scale_named
from rag_selectivity.tables.small import read_ids
from rag_selectivity.wording import counted, percent, several


def _columns(typed: str | None, called: str) -> dict[str, str]:
    columns = {}
    for part in typed.split(",") if typed else []:
        role, equals, column = part.partition("=")
        if not (equals and role.strip() and column.strip()):
            raise InputError(f"{called} {typed!r}: {part!r} is not FIELD=COLUMN, as in N=corpus,K=shown")
        columns[role.strip()] = column.strip()
    return columns


def _labels_if_given(typed: Any, called: str) -> Any:
    """The labels and runs, as typed or of selectivity.toml, and how many of them were typed."""
    are_given = typed or "qrels" in SETTINGS.file.get("data", {})
    return (*labels_and_runs(typed, called), len(typed or ())) if are_given else (None, {}, 0)


_Columns = Annotated[Any, Parsed(_columns)]
_Files = Annotated[Any, Parsed(_labels_if_given, many=True)]


def plan(
    files: _Files = None,
    *,
    corpus_size: int | None = None,
    corpus: Path | None = None,
    relevant: o.Depths = None,
    log: Path | None = None,
    columns: _Columns = None,
    scale: str | None = None,
    rel: int | None = None,
    depths: o.Depths = None,
    m: int = 1,
    detect: float | None = None,
    success: float = 0.8,
    power: float = 0.8,
    level: float = 0.95,
    human: int | None = None,
    known: Path | None = None,
    agreement: float | None = None,
    grade_map: str | None = None,
    judge: o.Names = None,
    printer: o.Output = o.Output(),
) -> None:
    """Show what chance alone achieves, or what a log of counts shows.

    BoR_max, the ceiling, is the most that any retriever can reach. No run is needed, only numbers of passages.

    With --human, labels and runs, show how wide the intervals of calibrated figures become.

    Data
    ----
    corpus_size : N
        Passages in the corpus, or tools in the catalogue.
    relevant : R,R
        Relevant passages of a query: one number, or one for each query, as in 1,3,4.
    known : FILE
        Labels by people so far, for --human: how far people and judge agree.

    Measures
    --------
    depths : K,K
        Depths, as in 5,20,58 (default: 1,2,5,10,… N).
    m : M, -m
        Relevant passages that make a success.

    Number of queries
    -----------------
    log : FILE
        Log of counts (JSONL, CSV or Parquet) with N, K, R and hit of each query: its bits over random.
    columns : MAP, --map
        Columns of --log, as in N=corpus,K=shown,R=rel,hit=ok.
    detect : BITS
        Find how many queries detect a difference of this size.
    success : SHARE
        Success rate of the better system.
    power : SHARE
        Chance to detect the difference.
    human : COUNT
        Labels by people: show how wide calibrated intervals become. Needs labels and runs.
    agreement : SHARE
        In place of --known: share of the pairs in which people and judge agree.

    [data]
    ------
    corpus
        Corpus whose passages are counted, where --corpus-size is not given.

    [intervals]
    -----------
    level
        Confidence level of intervals and tests.

    Usual options
    -------------
    corpus_size relevant files depths m log detect success human output

    Examples
    --------
    $ rag-selectivity plan --corpus-size 58 --relevant 4 --depths 5,20,58
    $ rag-selectivity plan qrels.trec --corpus-size 1000 --detect .2 --success .8
    """
    from rag_selectivity.advice.planning import TESTS, plan_human
    from rag_selectivity.measures.chance import DEGRADED_FROM

    if log is not None:
        own = {"log", "columns", "format", "output", "quiet", "config"}
        refuse_typed(SETTINGS.typed.keys() - own, "--log has the counts of each query")
        result = rs.audit(log, fields=columns, bootstrap=rs.Bootstrap(level=level))
        printer.show_rows(result, [{key: result[key] for key in result if key not in ("schema", "reason")}])
        return
    refuse_typed(("columns",), "the columns are those of --log")
    if corpus_size is None and corpus is not None:
        corpus_size = len({*read_ids(corpus)})
    # Counts that are typed take the place of the labels of selectivity.toml.
    qrels, runs, typed = files if relevant is None or files[2] else (None, {}, 0)
    try:
        labels = None if qrels is None else labels_of(qrels, None, judge, human)
    except InputError as error:
        raise InputError(f"{error}; a log of counts is given as --log {qrels}") from None
    if human is not None:
        refuse_typed(("relevant", "rel", "m", "detect", "success", "power"), "--human is about calibrated intervals")
        if labels is None or not runs:
            raise InputError("--human needs labels and runs to simulate with: give the judge's labels, then the runs")
        if depths is not None and len(depths) > 1:
            raise InputError("--human plans for one depth: give --depths K")
        options: dict[str, Any] = {"known": known, "agreement": agreement, "grade_map": grade_map, "scale": scale}
        options |= {"corpus_size": corpus_size, "depth": (depths or [10])[0], "bootstrap": rs.Bootstrap(level=level)}
        result = plan_human(labels, runs, human, **options)
        result["notes"] = notes = [
            f"{result['basis']}; means of six simulations and of {several([*runs])}",
            "half_width: half the width of the interval to expect for these very queries, no wider with more labels",
            "with_queries: the same with the uncertainty from the choice of queries, as evaluate prints it",
        ]
        most = f"{max(row['labels'] for row in result['rows']):,} (the most tried) do not halve it"
        notes += [f"{name}: {f'{n:,} labels halve it' if n else most}" for name, n in result["halved_by"].items()]
        printer.show_rows(result, result["rows"], notes)
        return
    refuse_typed(("known", "agreement"), "without --human nobody labels")
    if typed > 1:
        raise InputError("runs belong to --human COUNT: give it too, or leave them out")
    if detect is None:
        refuse_typed(("success", "power"), "without --detect nothing is to be shown")
    if corpus_size is None:
        raise InputError("give --corpus-size N: the passages of the corpus, or the tools of the catalogue")
    result = rs.plan(corpus_size, _relevant_counts(relevant, labels, rel, scale, grade_map), depths, m=m)
    share, deepest = percent(DEGRADED_FROM), result["max_K_for_random_success"]
    rare = f"in less than {share} of the queries up to K = {deepest}"
    lines = [f"a random draw succeeds {rare if deepest else f'in {share} of the queries or more even at K = 1'}"]
    if result["left_out"]:
        left_out = counted(result["left_out"], "query", "queries")
        lines.append(f"{left_out} left out of all figures, with too few relevant passages for a success")
    if detect is not None:
        # Those of `compare` with its default measures and depths; Success and BoR at a depth share one.
        tests = TESTS * (3 if scale == "utility" else 1)
        needed = result["queries_needed"] = rs.queries_needed(detect, success, power=power, level=level, rows=tests)
        lines.append(
            f"{needed:,} queries: McNemar's exact test then finds {detect:g} bits in {percent(power)} of samples or "
            f"more (success {percent(success)} and {percent(success * 2**-detect)}, "
            f"level {level:g}, corrected for the {counted(tests, 'test')} of a usual comparison)"
        )
    printer.show_rows(result, result["rows"], lines)


def _relevant_counts(
    given: list[int] | None, stored: rs.Qrels | None, rel: int | None, scale: str | None, grade_map: str | None
) -> list[int]:
    """Relevant passages of each query: as given, or counted in the labels."""
    if given is not None and stored is None:
        refuse_typed(("rel", "grade_map", "judge"), "--relevant has the counts, and no grades")
        return given
    if given is not None or stored is None:
        raise InputError("say what is relevant to a query: give --relevant R or labels (a file), not both")
    labels = stored.regraded(grade_map).on_scale(scale or stored.scale)
    threshold = scale_named(labels.scale or "trec").relevant_from if rel is None else rel
    return [sum(grade >= threshold for grade in labels[query].values()) for query in labels]
