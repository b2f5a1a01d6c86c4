"""`rag-selectivity online`: interleave, preference and compare."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.inputs import numbers
from rag_selectivity.cli.output import note, put
from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.wording import counted

_Lines = Annotated[Path | None, Writes((".jsonl", ".json", ".ndjson", ".txt"))]
_Value = TypeVar("_Value")


def online_interleave(
    run: o.Runs = None, *, k: int = 10, method: str = "team-draft", seed: str = "1", output: _Lines = None
) -> None:
    """Interleave two runs: a draft for each query.

    In an application, call `rag_selectivity.online.interleave` for each impression.

    Arguments
    ---------
    run : RUN
        Two runs: FILE or NAME=FILE.

    Data
    ----
    k : K
        Passages of the prompt.
    method : NAME
        How to merge: team-draft or probabilistic.
    seed : TEXT
        Text put before each query id to make the id of the impression; another one gives other drafts.

    Output
    ------
    output : FILE, -o
        File to write: .jsonl, .json, .ndjson or .txt. Default: standard output.

    Examples
    --------
    $ rag-selectivity online interleave bm25.trec dense.trec --k 5 --output drafted.jsonl
    $ rag-selectivity online interleave a=bm25.trec b=dense.trec --k 5 --method probabilistic --seed 2
    """
    import rag_selectivity as rs
    from rag_selectivity.online import interleave
    from rag_selectivity.tables.writing import json_line

    if run is None or len(run) != 2:
        raise InputError(f"online interleave takes two runs, got {len(run or ())}")
    lists = {name: rs.read_run(path).to_dict() for name, path in run.items()}
    first, second = lists.values()
    queries = dict.fromkeys([*first, *second])
    rows = []
    for query in queries:
        ranked = {name: list(of_run.get(query, ())) for name, of_run in lists.items()}
        rows.append(interleave(ranked, k=k, seed=f"{seed}/{query}", method=method).record(query))
    put("\n".join(map(json_line, rows)), output, is_data=True)
    if output is not None:
        note(f"wrote {output}: {counted(len(rows), 'draft')}")
    if alone := len(first.keys() ^ second.keys()):
        note(f"{alone:,} of {len(queries):,} queries are in one run alone, which drafted all their passages")


def online_preference(
    records: Path,
    *,
    baseline: str | None = None,
    unit: str = "auto",
    any_time: bool = False,
    margin: float | None = None,
    detect: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    printer: o.Output = o.Output(),
) -> None:
    """Say which of two interleaved systems got more credit.

    Arguments
    ---------
    records : FILE
        Log of drafts and credits (JSONL), as `RecordLog` writes it.

    Tests
    -----
    baseline : NAME
        System that the other is compared with (default: the first).
    unit : NAME
        What has one vote: user, session, impression, or auto (the first of these in the records).
    any_time
        Make p and the interval valid at any number of looks (default: for one look).
    margin : SHARE
        Largest distance of the share of wins from 1/2 that does not matter, as in .05.
    detect : SHARE
        Share of wins to detect, as in .55: prints how many more units it needs.
    power : SHARE
        Probability with which --detect shows the share.

    Usual options
    -------------
    records baseline unit any_time margin detect output

    Examples
    --------
    $ rag-selectivity online preference impressions.jsonl
    $ rag-selectivity online preference impressions.jsonl --unit impression --any-time --format json
    """
    from rag_selectivity.online import preference

    tests: dict[str, Any] = {"sequential": any_time, "level": level, "margin": margin, "detect": detect, "power": power}
    printer.show(preference(records, baseline=baseline, unit=unit, **tests))


def online_compare(
    rows: Path,
    *,
    metric: list[str],
    guardrail: o.Names = None,
    mean: o.Names = None,
    lower: o.Names = None,
    clip: bool = False,
    covariate: o.Names = None,
    arms: str = "a,b",
    planned: str = "1,1",
    once: bool = False,
    margin: o.Names = None,
    detect: o.Names = None,
    power: float = 0.8,
    level: float = 0.95,
    printer: o.Output = o.Output(),
) -> None:
    """Compare the arms of an A/B test, with guardrails.

    The verdicts are valid at any number of looks, unless --once is given. With several metrics they are corrected for
    the number of tests (Holm). Rows of one `user` (else `session`) count once.

    Arguments
    ---------
    rows : FILE
        Table of an arm and metrics, a row for each impression; or a monitor's trace.

    Data
    ----
    arms : NAMES
        Names of the arms in the column `arm`, the baseline first.
    planned : SHARES
        Planned shares of the arms in the traffic, as in 90,10.

    Measures
    --------
    metric : NAME
        Column of a metric to improve in arm b. Repeat for more.
    guardrail : NAME=MARGIN
        Column that may get worse by less than the margin. Repeat for more.
    mean : NAME=LOW:HIGH
        Column of numbers with their bounds; the other columns hold 0 and 1. Repeat for more.
    lower : NAME
        Column in which lower is better. Repeat for more.
    clip
        Count values outside the bounds as the bound; else they are an error.
    covariate : NAME=COLUMN:LOW:HIGH
        Column of values from before the experiment, for CUPED of a metric. Repeat for more.

    Tests
    -----
    once
        Use tests for one look at a number fixed beforehand (default: valid at any look).
    margin : NAME=VALUE
        Largest difference of a metric that does not matter. Repeat for more.
    detect : NAME=VALUE
        Difference of a metric to detect: prints how many more values it needs. Repeat for more.
    power : SHARE
        Probability with which --detect shows the difference.

    Usual options
    -------------
    rows metric guardrail mean lower planned detect output

    Examples
    --------
    $ rag-selectivity online compare arms.csv --metric cited --guardrail harm=.05 --lower harm --mean harm=0:1
    $ rag-selectivity online compare arms.csv --metric cited --once --detect cited=.03 --format json
    """
    from rag_selectivity.online import Experiment, Metric

    rails = _by_name(guardrail, "--guardrail", _number)
    names = [*metric, *rails]
    bounds, margins = _by_name(mean, "--mean", _bounds, names), _by_name(margin, "--margin", _number, metric)
    covariates = _by_name(covariate, "--covariate", _covariate, names)
    lowered = _by_name([f"{name}=lower" for name in lower or ()], "--lower", lambda text, option: text, names)
    metrics = [
        Metric(
            name,
            "mean" if name in bounds else "rate",
            bounds=bounds.get(name, (0.0, 1.0)),
            clip=clip and name in bounds,
            higher_is_better=name not in lowered,
            margin=rails.get(name, margins.get(name)),
            guardrail=name in rails,
            **covariates.get(name, {}),
        )
        for name in names
    ]
    test = Experiment(
        metrics,
        arms=[name.strip() for name in arms.split(",")],
        sequential=not once,
        planned=numbers(planned, "--planned", float, "shares, as in 90,10"),
    )
    for where, row in _rows(rows):
        test.add(row, where)
    printer.show(test.decide(level=level, detect=_by_name(detect, "--detect", _number), power=power))


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from rag_selectivity.live.trace import is_trace
    from rag_selectivity.online.records import outcomes_of_trace
    from rag_selectivity.tables.exact import read_records

    if is_trace(path):
        yield from outcomes_of_trace(path)
        return
    for line, row in read_records(path):
        yield f"{path}:{line}", row


def _by_name(
    texts: o.Names, option: str, parse: Callable[[str, str], _Value], names: Collection[str] = ()
) -> dict[str, _Value]:
    """The values of an option that is given as NAME=VALUE for each of several metrics."""
    values: dict[str, _Value] = {}
    for text in texts or ():
        name, equals, value = text.rpartition("=")
        if not (name and equals and value):
            raise InputError(f"{option} {text!r} must be NAME=VALUE")
        if name in values:
            raise InputError(f"{option} is given twice for {name!r}")
        if names and name not in names:
            raise InputError(f"{option} names {name!r}, which is none of {', '.join(names)}{did_you_mean(name, names)}")
        values[name] = parse(value, option)
    return values


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option}: {text!r} is not a number") from None


def _bounds(text: str, option: str) -> tuple[float, float]:
    from rag_selectivity.tables.cells import ends_of

    return ends_of(numbers(text, option, float, "two numbers, as in 0:1", between=":"), option)


def _covariate(text: str, option: str) -> dict[str, Any]:
    column, colon, bounds = text.partition(":")
    return {"covariate": column, **({"covariate_bounds": _bounds(bounds, option)} if colon else {})}
