"""Golden sets in the forms of other tools."""

from rag_selectivity.golden.forms.beir import Beir
from rag_selectivity.golden.forms.form import Form
from rag_selectivity.golden.forms.langsmith import LangSmith
from rag_selectivity.golden.forms.llama_index import LlamaIndex
from rag_selectivity.golden.forms.ragas import Ragas
from rag_selectivity.golden.forms.trec import Trec

#: Every form by its name.
FORMS: dict[str, Form] = {form.name: form for form in (Trec(), Beir(), Ragas(), LangSmith(), LlamaIndex())}
