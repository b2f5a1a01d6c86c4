"""`rag-selectivity audit`."""

from __future__ import annotations

from pathlib import Path

import rag_selectivity as rs
from rag_selectivity.cli import options as o
from rag_selectivity.cli.inputs import Readable
from rag_selectivity.cli.output import TABLE_FORMATS, chosen_format, put, rows_text
from rag_selectivity.errors import InputError

EXAMPLES = (
    "rag-selectivity audit log.jsonl",
    "rag-selectivity audit formats/log.csv --map N=N,K=K,R=R,hit=hit --format json",
)


def audit(
    log: Path = o.argument(Readable("FILE"), "Log (JSONL, CSV or Parquet) with N, K, R and hit for each query."),
    map: str | None = o.option(o.INPUT, "MAP", "Columns of the log, as in N=corpus,K=shown,R=rel,hit=ok."),
    format: o.TableFormatOption = None,
    output: o.OutputOption = None,
) -> None:
    """Measure Bits over Random from a log of counts.

    It needs no ids: the corpus size N, the depth K, the relevant passages R and the hits of each query are enough.
    """
    chosen = chosen_format(format, output, TABLE_FORMATS)
    result = rs.audit(log, fields=_field_map(map))
    row = {key: value for key, value in result.items() if key not in ("schema", "reason")}
    put(rows_text(result, [row], chosen), output)


def _field_map(text: str | None) -> dict[str, str]:
    fields = {}
    for part in text.split(",") if text else []:
        role, equals, column = part.partition("=")
        if not equals:
            raise InputError(f"--map {text!r}: {part!r} is not FIELD=COLUMN, as in N=corpus,K=shown")
        fields[role.strip()] = column.strip()
    return fields
