"""The explorer's data as one compressed text, with as many texts of passages as there is room for."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_selectivity.render.explorer.chosen import Chosen, Group, chosen_of
from rag_selectivity.render.explorer.data import Contents, plain
from rag_selectivity.render.explorer.texts import LEAST, Texts

#: The most characters of base64 that the data should have.
BUDGET = 8_000_000
#: The most characters of a text, tried one after another until the data fits.
LENGTHS = (20_000, 6_000, 3_000, LEAST, 800, 400, 200)
#: How many queries of each group have texts where the page has no room for those of all: tried one after another.
OF_A_GROUP = (50, 30, 20, 10)
#: Text compresses to no less than this share of its characters.
LEAST_SHARE = 0.1
#: Passages whose texts are compressed at a time.
_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class Packed:
    """The data as base64 of gzip of JSON, and what was cut.

    Attributes
    ----------
    longest : int or None
        The most characters of a text; 0 if texts were left out, None if they are whole.
    longer : float
        The share of the texts that are longer.
    candidates : int
        The depth of the lists.
    chosen : Chosen or None
        The queries whose passages have texts; None for all queries.
    """

    data: str
    longest: int | None
    longer: float
    candidates: int
    chosen: Chosen | None


@dataclass(frozen=True, slots=True)
class _Choice:
    """A way to make the texts fit: of which queries, and how many characters of each at most."""

    chosen: Chosen | None
    longest: int | None


def room_for_texts(budget: int | None) -> int | None:
    """The most characters of texts that could be packed."""
    return None if budget is None else int(budget / LEAST_SHARE)


def pack(
    contents: Contents,
    texts: Texts,
    groups: Sequence[Group],
    *,
    depth: int,
    candidates: int,
    budget: int | None = BUDGET,
) -> Packed:
    """Pack the contents with the texts of passages, as long as the budget allows.

    The texts of all queries are cut to no fewer than 1,500 characters. If these do not fit, the texts of the queries
    that matter are kept, whole or cut. If there is no room for these either, lists end at K. If that is too much, there
    are no texts, and the lists are whole again where they fit.

    Parameters
    ----------
    groups : sequence of Group
        The queries that matter.
    depth, candidates : int
        K, and how many passages of each list are packed.
    budget : int, optional
        The most characters of base64; None packs everything.
    """
    room = None if budget is None else budget // 4 * 3
    total = len(contents.queries)
    choices = list(_choices(texts, groups, total, cut=budget is not None))
    starts = []
    for reach in dict.fromkeys((candidates, depth)):
        starts.append(start := _Start(contents, reach))
        packed = start.first_that_fits(texts, choices, room) if choices else start.without_texts(None, room)
        if packed is not None:
            return packed
    left_out = 0 if choices else None
    for start in starts:
        if (packed := start.without_texts(left_out, room)) is not None:
            return packed
    # There is nothing more to leave out.
    return starts[-1].whole(left_out)


def _choices(texts: Texts, groups: Sequence[Group], total: int, *, cut: bool) -> Iterator[_Choice]:
    """What to try, the best first."""
    if not texts.texts:
        return
    if not cut:
        yield _Choice(None, None)
        return
    longest = max(map(len, texts.texts.values()))
    lengths = [length for length in LENGTHS if length < longest]
    long = [None, *(length for length in lengths if length >= LEAST)]
    if texts.complete:
        yield from (_Choice(None, each) for each in long if not texts.is_cut or (each is not None and each <= LEAST))
    chosen: Chosen | None = None
    for most in OF_A_GROUP:
        chosen = chosen_of(groups, total, most)
        if len(chosen.queries) < total:
            yield from (_Choice(chosen, length) for length in long)
        else:
            chosen = None
    yield from (_Choice(chosen, length) for length in lengths if length < LEAST)


class _Start:
    """The data without texts of passages, compressed once, to which texts can be added in several ways."""

    def __init__(self, contents: Contents, reach: int) -> None:
        self._contents, self._reach = contents, reach
        self._plain = plain(contents, reach)
        # No time is written, so that the same report gives the same page. Level 6 takes three times as long, saves 5 %.
        self._packer = zlib.compressobj(4, zlib.DEFLATED, 31)
        self._packed = self._packer.compress(_json(self._plain)[:-1])

    def first_that_fits(self, texts: Texts, choices: Sequence[_Choice], room: int | None) -> Packed | None:
        share = LEAST_SHARE
        for choice in choices:
            shown = self._texts(texts, choice)
            size = sum(map(len, shown.values()))
            if room is not None and share * size > room - len(self._packed):
                continue
            data, read = self._with(shown, choice, room)
            if data is not None:
                longer = sum(len(texts.texts[passage]) > len(text) for passage, text in shown.items())
                return Packed(data, choice.longest, longer / max(1, len(shown)), self._reach, choice.chosen)
            # What did not fit tells what cannot fit either; texts vary in how well they compress.
            share = max(share, 0.8 * (room or 0) / max(1, read))
        return None

    def without_texts(self, longest: int | None, room: int | None) -> Packed | None:
        data, _ = self._with({}, _Choice(None, longest), room)
        return None if data is None else Packed(data, longest, 0.0, self._reach, None)

    def _texts(self, texts: Texts, choice: _Choice) -> dict[str, str]:
        """The texts that a choice shows, cut."""
        wanted = None
        if choice.chosen is not None:
            wanted = self._contents.passages_of(choice.chosen.queries, self._reach) | self._contents.to_label()
        return {
            passage: texts.texts[passage][: choice.longest]
            for passage in self._plain["passages"]
            if passage in texts.texts and (wanted is None or passage in wanted)
        }

    def whole(self, longest: int | None) -> Packed:
        """Without texts, whatever the size."""
        packer = self._packer.copy()
        parts = [packer.compress(piece) for piece in self._rest({}, _Choice(None, longest))]
        return Packed(_text([self._packed, *parts, packer.flush()]), longest, 0.0, self._reach, None)

    def _with(self, texts: Mapping[str, str], choice: _Choice, room: int | None) -> tuple[str | None, int]:
        """The data with these texts, or None if it is larger than the room; and the bytes of text until then."""
        packer = self._packer.copy()
        parts, size, read = [self._packed], len(self._packed), 0
        for piece in self._rest(texts, choice):
            parts.append(packer.compress(piece))
            size += len(parts[-1])
            read += len(piece)
            if room is not None and size > room:
                return None, read
        parts.append(packer.flush())
        if room is not None and size + len(parts[-1]) > room:
            return None, read
        return _text(parts), read

    def _rest(self, texts: Mapping[str, str], choice: _Choice) -> Iterator[bytes]:
        """What follows the data without texts."""
        chosen = None if choice.chosen is None else sorted(choice.chosen.queries)
        yield b"," + _json({"longest": choice.longest, "texted": chosen})[1:-1] + b',"texts":'
        yield from self._pieces(texts)
        yield b"}"

    def _pieces(self, texts: Mapping[str, str]) -> Iterator[bytes]:
        if not texts:
            yield b"null"
            return
        passages = self._plain["passages"]
        for start in range(0, len(passages), _AT_A_TIME):
            some = [texts.get(passage) for passage in passages[start : start + _AT_A_TIME]]
            yield (b"," if start else b"[") + _json(some)[1:-1]
        yield b"]"


def _text(parts: Sequence[bytes]) -> str:
    return b64encode(b"".join(parts)).decode()


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a pair of surrogates has no bytes of its own.
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
