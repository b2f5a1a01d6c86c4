"""A file with a corpus, read once for its ids and lengths; texts are read again where they are needed."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rag_selectivity.data.forms import IdForm
from rag_selectivity.errors import InputError
from rag_selectivity.io.reading import corpus_rows
from rag_selectivity.io.record_text import TEXT_NAMES, passage_text
from rag_selectivity.io.texts import read_texts
from rag_selectivity.tables.exact import Row, kind_of, opened
from rag_selectivity.tables.names import PASSAGE_NAMES, QUERY_NAMES, optional_column


class CorpusFile:
    """The ids of a corpus, and the number of characters of each text; no texts are held.

    Attributes
    ----------
    path : Path
        The file; for a folder its `corpus.jsonl`.
    ids : list of str
        In the order of the file.
    """

    def __init__(self, path: str | Path) -> None:
        """Read a file.

        Raises
        ------
        InputError
            As `read_corpus_ids`. A text that is missing is an error where texts are asked for.
        """
        given = Path(path)
        self.path = given / "corpus.jsonl" if given.is_dir() else given
        self.ids: list[str] = []
        self._lines = array("q")
        self._characters = array("q")
        columns: dict[tuple[str, ...], tuple[str | None, bool]] = {}
        for line, id_, row in corpus_rows(path):
            names = tuple(row)
            known = columns.get(names)
            if known is None:
                known = columns[names] = _columns(names)
            self.ids.append(id_)
            self._lines.append(line)
            self._characters.append(_length(row, *known))
        # A row that needs a closer look: `read_texts` finds its text, or says what is wrong with it.
        self._is_plain = min(self._characters) >= 0

    def characters(self) -> Iterator[tuple[str, int]]:
        """(id, characters of its text) of every row; the title counts.

        Raises
        ------
        InputError
            If a passage has no text.
        """
        if self._is_plain:
            return zip(self.ids, self._characters, strict=True)
        return ((id_, len(text)) for id_, text in read_texts(self.path, "corpus"))

    def texts(self, wanted: Collection[str], form: IdForm) -> Iterator[tuple[str, str]]:
        """(id, text) of the rows whose id is wanted, by its form, in the order of the file.

        Raises
        ------
        InputError
            If a passage has no text, or the file has changed since it was read.
        """
        if not self._is_plain or kind_of(self.path) != "jsonl":
            yield from (row for row in read_texts(self.path, "corpus") if form(row[0]) in wanted)
            return
        ids = map(form, self.ids) if form.changes_ids else self.ids
        with opened(self.path) as file:
            last = 0
            for row in [row for row, id_ in enumerate(ids) if id_ in wanted]:
                number = self._lines[row]
                line = next(islice(file, number - last - 1, None), None)
                if line is None:
                    raise InputError(f"{self.path}: the file has changed while it was read; try again")
                yield self.ids[row], self._text(line, number)
                last = number

    def _text(self, line: bytes, number: int) -> str:
        try:
            row = json.loads(line.decode("utf-8-sig"))
        except ValueError:
            row = None
        text = passage_text(row) if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise InputError(f"{self.path}:{number}: the file has changed while it was read; try again")
        return text


def _columns(names: tuple[str, ...]) -> tuple[str | None, bool]:
    """The column of the text, and whether the id is that of `read_texts` too."""
    ids = [optional_column(names, ("_id", "id", *others)) for others in (PASSAGE_NAMES, (*QUERY_NAMES, *PASSAGE_NAMES))]
    return optional_column(names, TEXT_NAMES), ids[0] is not None and ids[0] == ids[1]


def _length(row: Row, column: str | None, has_one_id: bool) -> int:
    """The characters of the text of a row; -1 where a closer look is needed."""
    text: Any = None if column is None else row[column]
    title = row.get("title")
    if not has_one_id or not isinstance(text, str) or not text:
        return -1 if not has_one_id or not isinstance(passage_text(row), str) else len(passage_text(row))
    return len(f"{title}\n{text}") if title else len(text)
