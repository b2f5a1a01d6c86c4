"""Reading and writing. Importing any part of it registers the formats that are always there."""

from rag_selectivity.io.formats import FORMATS, register_format
from rag_selectivity.io.tables import Beir, CommaSeparated, JsonLines, Parquet, TabSeparated
from rag_selectivity.io.trec import Trec

# Of several that recognise a file the last one is taken; TREC, which recognises any file, comes first.
for _format in (Trec, Beir, TabSeparated, JsonLines, CommaSeparated, Parquet):
    register_format(_format)
# Label stores and golden sets are read above this package, and are registered by their place.
for _name, _class in (("store", "LabelStore"), ("exported", "ExportedLabels")):
    FORMATS.add_later(_name, "rag_selectivity.grading.labels_format", _class)
FORMATS.add_later("golden", "rag_selectivity.golden.label_format", "GoldenLabels")
