"""The registry: the measures that users choose by name, and what other packages add to it."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from rag_selectivity.errors import InputError, SelectivityWarning, did_you_mean


class Registry(Mapping[str, Any]):
    """Measures by their attribute `name`, whatever its case, in the order in which they were added.

    Installed packages add theirs by entry points, each of which names a class derived from `base`. These are loaded
    when a name is not found, and when all names are listed, so that looking up a name of this package costs nothing.
    """

    def __init__(self, base: type, group: str = "rag_selectivity.measures") -> None:
        self._base, self._group = base, group
        self._entries: dict[str, Any] = {}
        #: Further names, each with the name of its entry, which are listed nowhere.
        self.aliases: dict[str, str] = {}
        self._loaded = False

    def add(self, entry: Any) -> None:
        """Add a class. One that is defined again, as in a notebook, takes its own place.

        Raises
        ------
        InputError
            If another entry has the name.
        """
        key = entry.name.casefold()
        known = self._entries.get(key, entry)
        if (known.__module__, known.__qualname__) != (entry.__module__, entry.__qualname__) or key in self._known_as:
            raise InputError(f"there is a measure {entry.name!r} already: choose another name")
        self._entries[key] = entry

    @property
    def _known_as(self) -> dict[str, str]:
        return {alias.casefold(): name for alias, name in self.aliases.items()}

    def find(self, name: str) -> Any:
        """The entry of a name, or of a further name of it; an InputError with the closest names if there is none."""
        try:
            return self[self._known_as.get(name.casefold(), name)]
        except KeyError:
            near = did_you_mean(name, [*self.aliases, *self], most=3)
            every = f"{'' if near else ';'} `rag-selectivity explain` lists all"
            raise InputError(f"unknown measure {name!r}{near}{every}") from None

    def __getitem__(self, name: str) -> Any:
        if name.casefold() not in self._entries:
            self._load_entry_points()
        return self._entries[name.casefold()]

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter([entry.name for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _load_entry_points(self) -> None:
        from importlib.metadata import entry_points

        for point in () if self._loaded else entry_points(group=self._group):
            # Before the loading, so that a module which looks a name up while it is imported does not start it again.
            self._loaded = True
            try:
                entry = point.load()
                if not (isinstance(entry, type) and issubclass(entry, self._base)):
                    raise InputError(f"it is no {self._base.__name__}")
                self.add(entry)
            except Exception as error:
                # A fault in one package must not take the others away.
                why = f"{type(error).__name__}: {error}"
                text = f"the measure {point.name!r} of another package ({point.value}) cannot be used: {why}"
                warnings.warn(SelectivityWarning(text, "plugin-unusable"), stacklevel=2)
        self._loaded = True
