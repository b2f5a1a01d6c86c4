"""`RecordLog`: appends drafts and late credit to a file, from a running application."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rag_selectivity.live.trace import LineWriter
from rag_selectivity.online.interleaving import Draft
from rag_selectivity.online.records import SCHEMA, finite, mapping_of


class RecordLog(LineWriter):
    """A log of drafts and credits, which `join_records` joins by the id of the impression.

    Threads and processes may write to one file. A file that cannot be written does not end the application: the log
    `rag_selectivity` says it, and `lost` counts the lines.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        If the file cannot be written at the beginning.
    """

    def draft(self, draft: Draft, query: str, *, session: str | None = None, user: str | None = None) -> None:
        """Append what an impression was shown; `query` is its id or text, and texts stay in the log."""
        row = draft.record(query, session=session, user=user)
        self.append({"schema": SCHEMA, "time": round(time.time(), 3), **row})

    def credit(self, impression: str, credit: Mapping[str, float]) -> None:
        """Append credit of an impression, {passage: number}; it may come late, and in parts."""
        given = mapping_of(credit, "credit", "the credit of an impression", "{passage: number}")
        numbers = {name: finite(number, "credit", f"the credit of {name!r}") for name, number in given.items()}
        row = {"credit_of": str(impression), "credit": numbers}
        self.append({"schema": SCHEMA, "time": round(time.time(), 3), **row})
