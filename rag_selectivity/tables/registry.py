"""Registries: what users choose by name, and what other packages add to it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from rag_selectivity.errors import InputError, SelectivityWarning, did_you_mean

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Values or classes by name, in the order in which they were added.

    Installed packages add theirs by entry points. These are loaded when a name is not found, and when all names are
    listed, so that looking up a name of this package costs nothing.

    Parameters
    ----------
    kind : str
        What the entries are, for messages: "measure".
    group : str
        The group of entry points. Each of them names a value or class of the type `base`; its name in the registry is
        its attribute `name`, or that of the entry point if it has none.
    base : type
    any_case : bool
        Whether names are found whatever their case.
    """

    def __init__(self, kind: str, group: str, base: type, *, any_case: bool = False) -> None:
        self.kind, self.group, self.base = kind, group, base
        self._key = str.casefold if any_case else str
        self._entries: dict[str, tuple[str, T]] = {}
        #: Further names, each with the name of its entry, which are listed nowhere.
        self.aliases: dict[str, str] = {}
        self._known_as: dict[str, str] = {}
        self._loaded = False
        self._loading = threading.RLock()

    def add(self, name: str, entry: T) -> None:
        """Add an entry. A class that is defined again, as in a notebook, takes its own place.

        Raises
        ------
        InputError
            If another entry has the name.
        """
        key = self._key(name)
        if key in self._entries and not _same(self._entries[key][1], entry):
            raise InputError(f"there is a {self.kind} {self._entries[key][0]!r} already: choose another name")
        if key in self._known_as:
            raise InputError(
                f"{name!r} is another name of the {self.kind} {self._known_as[key]!r}: choose another name"
            )
        self._entries[key] = (name, entry)

    def add_alias(self, alias: str, name: str) -> None:
        """Let `find` know an entry of this package by a further name, which is listed nowhere."""
        self.aliases[alias] = self._known_as[self._key(alias)] = name

    def find(self, name: str) -> T:
        """The entry of a name, or of a further name of it.

        Raises
        ------
        InputError
            If there is none, with the closest name and all that are known.
        """
        try:
            return self[self._known_as.get(self._key(name), name)]
        except KeyError:
            raise InputError(
                f"unknown {self.kind} {name!r}{did_you_mean(name, [*self.aliases, *self])} (known: {', '.join(self)})"
            ) from None

    def __getitem__(self, name: str) -> T:
        if self._key(name) not in self._entries:
            self._load_entry_points()
        return self._entries[self._key(name)][1]

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter([name for name, _ in self._entries.values()])

    def __len__(self) -> int:
        self._load_entry_points()
        return len(self._entries)

    def _load_entry_points(self) -> None:
        from importlib.metadata import entry_points

        with self._loading:
            if self._loaded:
                return
            # Before the loading, so that a module which looks a name up while it is imported does not start it again.
            self._loaded = True
            for point in entry_points(group=self.group):
                try:
                    entry: Any = point.load()
                    fits = isinstance(entry, self.base) or (isinstance(entry, type) and issubclass(entry, self.base))
                    if not fits:
                        raise InputError(f"it is no {self.base.__name__}")
                    self.add(getattr(entry, "name", point.name), entry)
                except Exception as error:
                    # A fault in one package must not take the others away.
                    why = f"{type(error).__name__}: {error}"
                    text = f"the {self.kind} {point.name!r} of another package ({point.value}) cannot be used: {why}"
                    warnings.warn(SelectivityWarning(text, "plugin-unusable"), stacklevel=2)


def _same(known: Any, entry: Any) -> bool:
    if isinstance(known, type) and isinstance(entry, type):
        return (known.__module__, known.__qualname__) == (entry.__module__, entry.__qualname__)
    return bool(known == entry)
