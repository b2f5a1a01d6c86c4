"""People who label: what they label next, the offline page, and their answers."""

from rag_selectivity.people.answers import Answer, read_answers, write_answers
from rag_selectivity.people.designs import calibrate_draw, next_to_settle
from rag_selectivity.people.drawing import draw_pairs
from rag_selectivity.people.importing import import_answers
from rag_selectivity.people.making import make_tasks

__all__ = [
    "Answer",
    "calibrate_draw",
    "draw_pairs",
    "import_answers",
    "make_tasks",
    "next_to_settle",
    "read_answers",
    "write_answers",
]
