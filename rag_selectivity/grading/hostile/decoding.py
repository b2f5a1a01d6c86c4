"""What encoded and disguised parts of a passage say: base64, hexadecimal, rot13, leet, spaced and hidden letters."""

from __future__ import annotations

import binascii
import codecs
import re
from base64 import b64decode
from collections.abc import Iterator

from rag_selectivity.grading.hostile.neutral import hidden_runs
from rag_selectivity.grading.hostile.words import Possible

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){16,}(?![0-9A-Fa-f])")
_LEET = str.maketrans("013457@$!|", "oieastasii")
_SPACED = re.compile(r"(?<!\w)(?:[^\W_][ .*_\-]{1,3}){7,}[^\W_](?!\w)")
_SEPARATOR = re.compile(r"(?<=\w)[.*_\- ](?=\w)")
_TAG = re.compile("[\U000e0020-\U000e007e]{4,}")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef\ufe00-\ufe0f]{4,}")
_REVERSED = re.compile("[\u202e\u202d]([^\u202c\u2069\n]{5,})")
_READABLE_SHARE = 0.9


def decoded(text: str, able: Possible) -> Iterator[tuple[str, str]]:
    """(kind, what it says) for every disguised part of a text that can be read; the kind is a noun phrase."""
    if able.binary:
        yield from _binary(text)
    if able.rot13:
        yield "rot13", codecs.decode(text, "rot13")
    if able.leet:
        yield "leet", _unleeted(text.lower())
    if able.spaced and (found := _SPACED.findall(text)):
        yield "spaced letters", " ".join(map(_unspaced, found))
    if not text.isascii():
        yield from _hidden(text)


def _binary(text: str) -> Iterator[tuple[str, str]]:
    for found in _HEX.findall(text):
        yield from _readable("hexadecimal", binascii.unhexlify(found))
    for found in _BASE64.findall(text):
        body = found.rstrip("=").replace("-", "+").replace("_", "/")
        if len(body) % 4 != 1:
            yield from _readable("base64", b64decode(body + "=" * (-len(body) % 4)))


def _readable(kind: str, data: bytes) -> Iterator[tuple[str, str]]:
    text = data.decode("utf-8", "replace")
    if sum(character.isalnum() or character in " .,:;!?'\"{}\n" for character in text) >= _READABLE_SHARE * len(text):
        yield kind, text


def _unleeted(lowered: str) -> str:
    words = lowered.split(" ")
    return " ".join(word.translate(_LEET) if any(map(str.isalpha, word)) else word for word in words)


def _unspaced(found: str) -> str:
    """Letters joined to words: the widest separator stands between words, or the one that is not between letters."""
    between = "  " if "  " in found else next((s for s in " " if re.search(r"\w[.*_\-]\w", found)), "")
    words = found.split(between) if between else [found]
    return " ".join(_SEPARATOR.sub("", word) for word in words)


def _hidden(text: str) -> Iterator[tuple[str, str]]:
    for run in hidden_runs(text):
        if _TAG.search(run):
            yield "tag characters", "".join(chr(ord(c) - 0xE0000) for c in run if 0xE0020 <= ord(c) < 0xE007F)
        if _SELECTORS.search(run):
            yield "variation selectors", bytes(filter(None, map(_byte_of, run))).decode("utf-8", "replace")
    for found in _REVERSED.findall(text):
        yield "reversed text", found[::-1]


def _byte_of(character: str) -> int:
    code = ord(character)
    if 0xE0100 <= code <= 0xE01EF:
        return code - 0xE0100 + 16
    return code - 0xFE00 if 0xFE00 <= code <= 0xFE0F else 0
