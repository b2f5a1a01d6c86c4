"""Online evaluation: interleaving and A/B tests.

>>> from rag_selectivity.online import interleave
>>> draft = interleave({"a": ["d1", "d2"], "b": ["d2", "d3"]}, k=2, seed="impression-1")
>>> draft.passages, sorted(draft.team.values())
(['d2', 'd1'], ['a', 'b'])
"""

from rag_selectivity.online.arms import Metric, TwoArms, compare_arms
from rag_selectivity.online.credit import citations, credit
from rag_selectivity.online.experiment import Experiment
from rag_selectivity.online.interleaving import Draft, interleave
from rag_selectivity.online.joining import JoinedRecords, join_records
from rag_selectivity.online.preference import preference
from rag_selectivity.online.records import RecordLog

__all__ = [
    "Draft",
    "Experiment",
    "JoinedRecords",
    "Metric",
    "RecordLog",
    "TwoArms",
    "citations",
    "compare_arms",
    "credit",
    "interleave",
    "join_records",
    "preference",
]
