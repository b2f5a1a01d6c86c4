"""Sample: a question with its retrieved texts, a reference answer and a response."""

from dataclasses import field

from rag_selectivity.results.plain import Plain
from rag_selectivity.tables.ids import text_id


class Sample(Plain):
    """A question with its retrieved texts, a reference answer and a response; the field names are those of Ragas.

    `retrieved_contexts` are in rank order; `passages` are their ids, empty if they have none. The other fields of Ragas
    are not needed.
    """

    user_input: str
    retrieved_contexts: tuple[str, ...] = field(repr=False)
    reference: str | None = None
    id: str = ""
    response: str | None = None
    passages: tuple[str, ...] = ()

    @property
    def passage_ids(self) -> tuple[str, ...]:
        """The ids of the passages; hashes of their texts if they have none."""
        return self.passages or tuple(map(text_id, self.retrieved_contexts))
