"""The exceptions and the warning of this package."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice

from rag_selectivity.wording import enumeration, visible_lines

__all__ = ["GradingError", "InputError", "MissingExtraError", "SelectivityError", "SelectivityWarning"]
__all__ += ["did_you_mean", "examples", "warn"]


class SelectivityError(Exception):
    r"""Base of all errors that rag-selectivity raises on purpose; control characters in its message are shown as text.

    >>> str(SelectivityError("run \x1b[2J: no ids match"))
    'run \\x1b[2J: no ids match'
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(visible_lines(each) if isinstance(each, str) else each for each in args))


class GradingError(SelectivityError):
    """Grading cannot continue."""


class InputError(SelectivityError, ValueError):
    """An argument or a file is wrong; the message says what is wrong, where, and what to do."""


class MissingExtraError(SelectivityError, ImportError):
    """An optional dependency is not installed; the message names the extra that installs it.

    >>> import pickle
    >>> str(pickle.loads(pickle.dumps(MissingExtraError("typer", "cli", "the command line"))))
    "the command line needs typer: pip install 'rag-selectivity[cli]' (in a clone: pip install -e '.[cli]')"
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        mend = f"pip install 'rag-selectivity[{extra}]' (in a clone: pip install -e '.[{extra}]')"
        super().__init__(f"{purpose} needs {package}: {mend}")
        self._made_of = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        # A worker process, as Ray's, sends its exceptions pickled; by default that calls __init__ with the message.
        return type(self), self._made_of


@contextmanager
def needing(package: str, extra: str, purpose: str) -> Iterator[None]:
    """What is imported within, a `purpose` needs: if it is missing, the error names the extra that installs it."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None


class SelectivityWarning(UserWarning):
    """The figures are computed, but the input is probably not what the user meant.

    Attributes
    ----------
    text : str
        The message without the code.
    code : str
        For programs; the message ends in it. `rag-selectivity explain CODE` explains it.

    >>> warning = SelectivityWarning("few ids match", "ids-partly-match")
    >>> str(warning), warning.code
    ('few ids match [ids-partly-match]', 'ids-partly-match')
    """

    def __init__(self, text: str = "", code: str = "") -> None:
        self.text, self.code = visible_lines(text), code
        super().__init__(f"{self.text} [{code}]" if code else self.text)


def did_you_mean(word: object, known: Iterable[object], most: int = 1, least: float = 0.5) -> str:
    """`'; did you mean "BoR"?'` if known words are similar, the most similar first, otherwise an empty string.

    `least` is the share of a word that must be alike.

    >>> did_you_mean("bro", ["BoR", "EF"]), did_you_mean("recal", ["recall", "R", "RR", "precall"], 3)
    ('; did you mean "BoR"?', '; did you mean "recall" or "precall"?')
    """
    if not isinstance(word, str):
        return ""
    by_folded = {str(name).casefold(): name for name in known}
    close = [f'"{by_folded[each]}"' for each in get_close_matches(word.casefold(), by_folded, n=most, cutoff=least)]
    return f"; did you mean {enumeration(close, 'or')}?" if close else ""


def examples(ids: Iterable[object]) -> str:
    """The first three distinct ids, quoted and cut if they are texts, for an error message.

    >>> examples(["a", "b", "b", "c", "d"])
    "'a', 'b', 'c'"
    """
    return ", ".join(f"{value!r:.80}" for value in islice(dict.fromkeys(islice(ids, 1000)), 3))


def warn(text: str, code: str, *, stacklevel: int) -> None:
    """Warn of something that makes figures mean less; a `stacklevel` of 1 is this function's."""
    warnings.warn(SelectivityWarning(text, code), stacklevel=stacklevel)
