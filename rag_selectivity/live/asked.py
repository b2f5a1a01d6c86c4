"""Questions with labels that were asked, and whether anything was retrieved for them."""

from collections.abc import Collection, Iterable

from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.wording import counted, named


class Asked:
    """Tells a question for which nothing was retrieved from one that nobody asked.

    Parameters
    ----------
    labels : collection of queries
        By their ids or texts. Other questions do not matter.
    """

    def __init__(self, labels: Collection[str]) -> None:
        self._labels = labels
        self._retrieved: set[str] = set()
        self._without: dict[str, None] = {}

    def ask(self, *names: str | None) -> None:
        """A question was asked and answered, whatever was retrieved; it may go by one of some names."""
        name = next((name for name in names if name is not None and name in self._labels), None)
        if name is not None and name not in self._retrieved:
            self._without[name] = None

    def retrieve(self, retrieval: Retrieval) -> bool:
        """Something was retrieved; whether its query has labels."""
        if (name := retrieval.name_in(self._labels)) is not None:
            self._retrieved.add(name)
            self._without.pop(name, None)
        return name is not None

    @property
    def without(self) -> list[Retrieval]:
        """A retrieval of nothing for each question that was asked and brought none."""
        return [Retrieval(name, ()) for name in self._without]

    @property
    def failed(self) -> list[str]:
        """What to say of such questions."""
        names = list(self._without)
        were, them = ("question was", "it") if len(names) == 1 else ("questions were", "them")
        said = f"{len(names):,} labelled {were} asked and nothing was shown for {them}{named(names, len(names))}"
        return [f"{said}: counted as empty lists"] if names else []

    @property
    def notes(self) -> list[str]:
        """The same, and what to say of labelled queries that nobody asked."""
        return [*self.failed, *not_seen(self._labels, {*self._retrieved, *self._without})]


def not_seen(labels: Iterable[str], seen: Collection[str]) -> list[str]:
    """What to say of labelled queries of which nothing was seen."""
    unseen = [query for query in labels if query not in seen]
    said = f"no retrieval was seen for {counted(len(unseen), 'labelled query', 'labelled queries')}"
    return [f"{said}{named(unseen, len(unseen))}: not counted"] if unseen else []
