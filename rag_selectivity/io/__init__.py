"""Reading and writing files. Importing any part of it registers the formats that are always there."""

from rag_selectivity.io.formats import register_format
from rag_selectivity.io.tables import Beir, CommaSeparated, JsonLines, Parquet, TabSeparated
from rag_selectivity.io.trec import Trec

# Of several that recognise a file the last one is taken; TREC, which recognises any file, comes first.
for _format in (Trec, Beir, TabSeparated, JsonLines, CommaSeparated, Parquet):
    register_format(_format)
