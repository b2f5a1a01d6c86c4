"""Gzipped files are read as Python's own gzip reads them, whole, cut, changed, and from any place."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
from rag_selectivity.io.opening import opened

from rag_selectivity.errors import InputError

pytestmark = pytest.mark.inside


def _members(rng: random.Random) -> list[bytes]:
    sizes = rng.choices([0, 1, 10, 1000, 300_000], k=rng.choice([1, 1, 2, 3]))
    return [bytes(rng.choices(b"ab\n", k=size)) for size in sizes]


@pytest.mark.parametrize("seed", range(30))
def test_whole_files_and_places_in_them(seed, tmp_path) -> None:
    rng = random.Random(seed)
    members = _members(rng)
    content, path = b"".join(members), tmp_path / "x"
    packed = b"".join(gzip.compress(member, rng.choice([0, 1, 9])) for member in members)
    path.write_bytes(packed + bytes(rng.choice([0, 3, 1 << 19])))
    with opened(path, any_content=True) as file:
        pieces = list(iter(lambda: file.read(rng.choice([100, 5000, 1 << 20])), b""))
        assert b"".join(pieces) == content
        assert (file.seek(0), file.readline()) == (0, content[: content.find(b"\n") + 1 or None])
        place = rng.randint(0, len(content))
        assert (file.seek(place), file.read(10)) == (place, content[place : place + 10])
        assert file.seek(0, 2) == len(content)
        file.seek(0)
        buffer = bytearray(len(content) + 5)
        assert file.readinto(buffer) == len(content)  # type: ignore[attr-defined]
        assert buffer[: len(content)] == content


@pytest.mark.parametrize("seed", range(30))
def test_damaged_files(seed, tmp_path) -> None:
    rng = random.Random(seed)
    packed = b"".join(map(gzip.compress, _members(rng)))
    # The first bytes say that it is gzipped; zlib refuses reserved flags in the fourth, which Python's gzip ignores.
    changed = bytearray(packed)
    changed[rng.randrange(4, len(packed))] ^= 1 << rng.randrange(8)
    for damaged in (packed[: rng.randrange(4, len(packed))], bytes(changed), packed + b"more"):
        path = tmp_path / "x"
        path.write_bytes(damaged)
        try:
            expected = gzip.decompress(damaged)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            with pytest.raises(InputError, match="the gzip data is damaged"), opened(path, any_content=True) as file:
                file.read()
        else:
            with opened(path, any_content=True) as file:
                assert file.read() == expected
