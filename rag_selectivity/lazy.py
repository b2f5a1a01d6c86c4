"""Names of a package whose modules are imported when they are used, since they need a further extra."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__` for names whose modules need a further extra.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    modules : {name: module of the package}

    Examples
    --------
    >>> later = load_on_first_use("rag_selectivity", {"join": "judged.joining"})
    >>> later("join").__name__
    'join'
    """

    def load(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
