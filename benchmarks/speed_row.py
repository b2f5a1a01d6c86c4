"""A row of the table that `benchmarks/speed.py` prints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, beside what is to be reached.

    Attributes
    ----------
    work : str
        What was done.
    reach : str
        What is to be reached, a ratio wherever there is a peer.
    measured : str
        Our figures.
    peer : str
        The peer's figures, measured in the same minute.
    reached : bool or None
        Whether the figures reach it; None if the peer is missing.
    """

    work: str
    reach: str
    measured: str
    peer: str
    reached: bool | None
