"""The label store: one SQLite file that holds the labels of judges and people.

A label belongs to texts, not to ids. Its key is what was asked (model, parameters, rubric, prompt version) and the
hashes of the query and the passage. The table `pairs` says which texts an id has now. So a passage whose text changed
is graded again, and a passage whose id changed is not.

All SQL of the project is in this package.
"""

from rag_selectivity.grading.store.importing import Incoming
from rag_selectivity.grading.store.one_grade import LabelReading, label_rows, median_grade
from rag_selectivity.grading.store.records import (
    ADJUDICATION,
    TARGETED_DRAWS,
    Draw,
    HumanLabel,
    Key,
    Label,
    Origin,
    Settings,
    StoredAnswer,
    design_of,
    digest,
    is_adjudication,
    is_targeted,
)
from rag_selectivity.grading.store.schema import DatabaseError
from rag_selectivity.grading.store.store import Store

__all__ = [
    "ADJUDICATION",
    "TARGETED_DRAWS",
    "DatabaseError",
    "Draw",
    "HumanLabel",
    "Incoming",
    "Key",
    "Label",
    "LabelReading",
    "Origin",
    "Settings",
    "Store",
    "StoredAnswer",
    "design_of",
    "digest",
    "is_adjudication",
    "is_targeted",
    "label_rows",
    "median_grade",
]
