"""The JSON objects of a file, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from rag_selectivity.io.chunks import Row
from rag_selectivity.io.json_lines import json_rows
from rag_selectivity.io.opening import decoded_lines, line_blocks, opened

_LINE_ENDS = ("\n", "\r\n", "")


def json_objects(path: Path) -> Iterator[tuple[int, Row]]:
    """(line, object) of each line that is not blank: as `json_rows`, in less than half its time."""
    read_object = json.JSONDecoder().raw_decode
    with opened(path) as file:
        for lines in line_blocks(file):
            for number, line in enumerate(BytesIO(lines.text), lines.first):
                try:
                    text = line.decode()
                    row, end = read_object(text)
                except (ValueError, RecursionError):
                    row, end = None, 0
                if type(row) is dict and text[end:] in _LINE_ENDS:
                    yield number, row
                else:
                    yield from json_rows(path, decoded_lines(path, [line], number))
