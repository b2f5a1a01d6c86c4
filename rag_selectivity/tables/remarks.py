"""What is noticed while labels and runs are read, as counts by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

NO_REMARKS: Mapping[str, int] = {}

#: Remarks that are a reason to doubt the input, and what they say; `{count}` and `{name}` (of the run) are filled in.
DOUBTS = {
    "rank_against_score": (
        "{name}: rank and score contradict each other in {count} neighbouring rows: its lists are ordered by score. "
        "If a smaller score is better, negate the scores; if the rows stand in the right order, give order='rank' "
        "(--order rank)"
    ),
    "ranking_columns_in_labels": (
        "the labels have a column for a score or a rank too: are they a run? The labels come first, then the runs"
    ),
}
#: Remarks that are no reason to doubt the input: what they say, and the codes of the notes.
NOTES = {
    "run_comment_lines": ("{count} lines of {name} begin with # and were left out", "comment-lines"),
    "label_comment_lines": ("{count} lines of the labels begin with # and were left out", "comment-lines"),
}


def counted(**counts: int) -> Mapping[str, int]:
    """The counts that are not 0.

    >>> counted(run_comment_lines=2, lists_as_labels=0)
    {'run_comment_lines': 2}
    """
    return {code: count for code, count in counts.items() if count}


def together(remarks: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """The sums of the counts.

    >>> together([{"run_comment_lines": 2}, {}, {"run_comment_lines": 1}])
    {'run_comment_lines': 3}
    """
    sums: Counter[str] = Counter()
    for each in remarks:
        sums.update(each)
    return dict(sums)


def without(remarks: Mapping[str, int], *codes: str) -> Mapping[str, int]:
    """The counts of the other codes."""
    return {other: count for other, count in remarks.items() if other not in codes}
