"""Online evaluation: interleaving and A/B tests.

>>> from rag_selectivity.online import interleave
>>> draft = interleave({"a": ["d1", "d2"], "b": ["d2", "d3"]}, k=2, seed="impression-1")
>>> draft.passages, sorted(draft.team.values())
(['d2', 'd1'], ['a', 'b'])
"""

from rag_selectivity.online.arms import Metric as Metric
from rag_selectivity.online.arms import TwoArms as TwoArms
from rag_selectivity.online.arms import compare_arms as compare_arms
from rag_selectivity.online.credit import citations as citations
from rag_selectivity.online.credit import credit as credit
from rag_selectivity.online.experiment import Experiment as Experiment
from rag_selectivity.online.interleaving import Draft as Draft
from rag_selectivity.online.interleaving import interleave as interleave
from rag_selectivity.online.joining import JoinedRecords as JoinedRecords
from rag_selectivity.online.joining import join_records as join_records
from rag_selectivity.online.preference import preference as preference
from rag_selectivity.online.records import RecordLog as RecordLog
