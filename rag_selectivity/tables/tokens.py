"""The lengths of passages in tokens: counted by a tokenizer, or estimated from their characters."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.tables.cells import cost_or_length, shown
from rag_selectivity.tables.forms import AS_THEY_ARE, IdForm
from rag_selectivity.tables.small import read_texts

#: Four characters are about one token of English text.
CHARACTERS_A_TOKEN = 4


def counted_tokens(corpus: Any, tokenizer: Callable[[str], Any]) -> dict[str, float]:
    """{passage: tokens} of the texts of a corpus, counted by a tokenizer; titles count.

    Parameters
    ----------
    corpus : {passage: text}, DataFrame, path, or iterable of records or pairs
    tokenizer : callable
        Gives the tokens of a text, or their number: `tiktoken.get_encoding(NAME).encode`, or a tokenizer of
        Transformers with its `encode`.

    Raises
    ------
    InputError
        If it gives neither or fails, or if a text is missing.

    >>> counted_tokens({"d1": "three short words"}, str.split)
    {'d1': 3.0}
    """
    if not callable(tokenizer):
        raise InputError(f"the tokenizer {tokenizer!r} is no function; give one that takes a text")
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__name__)
    lengths = {}
    for passage, text in read_texts(corpus, "corpus"):
        who, mend = f"passage {passage!r}: the tokenizer {name}", "it must give the tokens of a text, or their number"
        try:
            found = tokenizer(text)
        except Exception as error:
            # Its message may repeat the text.
            raise InputError(f"{who} failed ({type(error).__name__}); {mend}") from error
        number = found if isinstance(found, (int, float)) else len(found) if hasattr(found, "__len__") else None
        if number is None:
            raise InputError(f"{who} gave {shown(found)}; {mend}")
        lengths[passage] = cost_or_length(number, f"the number of tokens of passage {passage!r}")
    return lengths


def estimated_tokens(
    corpus: Any, form: IdForm = AS_THEY_ARE, passages: Container[str] | None = None
) -> dict[str, float]:
    """{passage: tokens} of the texts of a corpus, estimated at four characters a token; titles count.

    `corpus` is as in `counted_tokens`. `passages` are the only ones that are wanted, in the form.

    >>> estimated_tokens({"d1": "twelve chars"})
    {'d1': 3.0}
    """
    known = ((form(passage), len(text) / CHARACTERS_A_TOKEN) for passage, text in read_texts(corpus, "corpus"))
    return {passage: length for passage, length in known if passages is None or passage in passages}
