"""`outcomes_of_trace`: what a monitor's trace says of the requests of an A/B test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.trace import trace_lines
from rag_selectivity.online.records import finite, named


def outcomes_of_trace(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, {arm, outcome, seconds, tokens}) of each request of a trace that names an arm, in their order.

    The retrievals of one `id` are one request: their seconds and tokens are summed, and the last outcome counts, late
    ones included. The requests are kept until the file is read, since an outcome may stand at its end.

    Raises
    ------
    InputError
        If a request was in two arms, or no retrieval names its arm.
    """
    requests: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    late: dict[str, float] = {}
    for line, row in trace_lines(path):
        where = f"{path}:{line}"
        if "outcome_of" in row:
            id_ = named(row, "outcome_of", where)
            late[str(id_)] = finite(row.get("outcome"), where, "outcome")
            continue
        arm = named(row, "arm", where)
        if arm is None:
            continue
        key = named(row, "id", where) or where
        request = requests.setdefault(key, {"arm": arm})
        places.setdefault(key, where)
        if request["arm"] != arm:
            raise InputError(f"{where}: request {key!r} is in arm {arm!r}, and was in {request['arm']!r} before")
        for name in ("seconds", "tokens"):
            if row.get(name) is not None:
                request[name] = request.get(name, 0.0) + finite(row[name], where, name)
        if row.get("outcome") is not None:
            request["outcome"] = finite(row["outcome"], where, "outcome")
    if not requests:
        raise InputError(f"{path}: no retrieval names its arm: give Retrieval(arm=…), or monitor.request(arm=…)")
    for key, request in requests.items():
        if key in late:
            request["outcome"] = late[key]
        yield places[key], request
