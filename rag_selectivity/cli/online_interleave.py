"""`rag-selectivity online interleave`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable, named_files
from rag_selectivity.cli.output import note, put
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity online interleave bm25.trec dense.trec --k 5 --output drafted.jsonl",
    "rag-selectivity online interleave a=bm25.trec b=dense.trec --k 5 --method probabilistic --seed 2",
)


def online_interleave(
    run: Annotated[list[str], o.argument(Readable("RUN"), "Two runs: FILE or NAME=FILE.")],
    k: int = o.option(o.INPUT, "K", "Passages of the prompt.", "--k", default=10),
    method: str = o.option(o.INPUT, "NAME", "How to merge: team-draft or probabilistic.", default="team-draft"),
    seed: str = o.option(
        o.INPUT,
        "TEXT",
        "Text put before each query id to make the id of the impression; another one gives other drafts.",
        default="1",
    ),
    output: Path | None = o.output_file(".jsonl", ".json", ".ndjson", ".txt"),
) -> None:
    """Interleave two runs: a draft for each query.

    In an application, call `rag_selectivity.online.interleave` for each impression.
    """
    import rag_selectivity as rs
    from rag_selectivity.online import interleave
    from rag_selectivity.tables.writing import json_line, write_whole

    files = named_files(run)
    if len(files) != 2:
        raise InputError(f"online interleave takes two runs, got {len(files)}")
    lists = {name: rs.read_run(path).to_dict() for name, path in files.items()}
    first, second = lists
    queries = dict.fromkeys([*lists[first], *lists[second]])
    rows = []
    for query in queries:
        ranked = {name: list(of_run.get(query, ())) for name, of_run in lists.items()}
        rows.append(interleave(ranked, k=k, seed=f"{seed}/{query}", method=method).record(query))
    if output is None or str(output) == "-":
        put("\n".join(json_line(row) for row in rows), None, is_data=True)
    else:
        write_whole(output, lambda file: file.writelines(f"{json_line(row)}\n".encode() for row in rows))
    alone = sum(1 for query in queries if not all(query in of_run for of_run in lists.values()))
    if alone:
        note(f"{alone:,} of {len(queries):,} queries are in one run alone, which drafted all their passages")
