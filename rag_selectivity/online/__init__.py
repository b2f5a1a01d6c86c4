"""Online evaluation: interleaving, A/B tests, citation rates by position, and what offline measures foretold.

>>> from rag_selectivity.online import interleave
>>> draft = interleave({"a": ["d1", "d2"], "b": ["d2", "d3"]}, k=2, seed="impression-1")
>>> draft.passages, sorted(draft.team.values())
(['d2', 'd1'], ['a', 'b'])
"""

from rag_selectivity.online.arms import TwoArms, compare_arms
from rag_selectivity.online.credit import citations, credit
from rag_selectivity.online.experiment import Experiment, Metric
from rag_selectivity.online.foretelling import foretold
from rag_selectivity.online.impressions import Impression, Interleaver, current_impression, impression
from rag_selectivity.online.interleaving import Draft, interleave, shuffle
from rag_selectivity.online.joining import JoinedRecords, join_records
from rag_selectivity.online.log import RecordLog
from rag_selectivity.online.positions import citation_rates
from rag_selectivity.online.preference import preference

__all__ = [
    "Draft",
    "Experiment",
    "Impression",
    "Interleaver",
    "JoinedRecords",
    "Metric",
    "RecordLog",
    "TwoArms",
    "citation_rates",
    "citations",
    "compare_arms",
    "credit",
    "current_impression",
    "foretold",
    "impression",
    "interleave",
    "join_records",
    "preference",
    "shuffle",
]
