"""`rag-selectivity online interleave`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.files import Writes
from rag_selectivity.cli.output import note, put
from rag_selectivity.errors import InputError
from rag_selectivity.wording import counted

_Lines = Annotated[Path | None, Writes((".jsonl", ".json", ".ndjson", ".txt"))]


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
    alone = len(first.keys() ^ second.keys())
    if alone:
        note(f"{alone:,} of {len(queries):,} queries are in one run alone, which drafted all their passages")
