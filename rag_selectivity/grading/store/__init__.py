"""The label store: one SQLite file that holds the labels of judges and people.

A label belongs to texts, not to ids. Its key is what was asked (model, parameters, rubric, prompt version) and the
hashes of the query and the passage. The table `pairs` says which texts an id has now. So a passage whose text changed
is graded again, and a passage whose id changed is not.

All SQL of the project is in this package.
"""

from rag_selectivity.grading.store.connection import DatabaseError as DatabaseError
from rag_selectivity.grading.store.connection import damaged as damaged
from rag_selectivity.grading.store.records import ADJUDICATION as ADJUDICATION
from rag_selectivity.grading.store.records import NOT_KNOWN as NOT_KNOWN
from rag_selectivity.grading.store.records import TARGETED_DRAWS as TARGETED_DRAWS
from rag_selectivity.grading.store.records import Draw as Draw
from rag_selectivity.grading.store.records import HumanLabel as HumanLabel
from rag_selectivity.grading.store.records import Incoming as Incoming
from rag_selectivity.grading.store.records import Key as Key
from rag_selectivity.grading.store.records import Label as Label
from rag_selectivity.grading.store.records import Origin as Origin
from rag_selectivity.grading.store.records import Settings as Settings
from rag_selectivity.grading.store.records import digest as digest
from rag_selectivity.grading.store.records import unread as unread
from rag_selectivity.grading.store.store import Store as Store
