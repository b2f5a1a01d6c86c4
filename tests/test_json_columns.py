"""JSON lines as columns: they give what they give object by object, or the same error."""

from __future__ import annotations

import json

import pytest

from rag_selectivity.io import opening
from rag_selectivity.io.json_lines import JsonLinesChunk
from rag_selectivity.io.tables import JsonLines
from tests.cell_by_cell import assert_alike, refuse, whole


@pytest.fixture(params=[40, 1 << 19])
def block(request, monkeypatch) -> None:
    """Blocks of a line or two, and of the whole file."""
    monkeypatch.setattr(opening, "_BLOCK", request.param)


def lines_of(*cells: str, keys: tuple[str, str, str] = ("query_id", "doc_id", "score")) -> str:
    """Lines of JSON with these values, written as they are."""
    of_rows = (cells[i : i + 3] for i in range(0, len(cells), 3))
    return "".join("{" + ", ".join(f'"{k}": {v}' for k, v in zip(keys, row, strict=True)) + "}\n" for row in of_rows)


PLAIN = lines_of('"q1"', '"a"', "2.5", '"q1"', '"b"', "1.5", '"q2"', '"a"', "1")
AWKWARD_JSON = {
    "plain": PLAIN,
    "compact": PLAIN.replace(" ", ""),
    "no line end": PLAIN.strip(),
    "line ends of Windows": PLAIN.replace("\n", "\r\n"),
    "both line ends": PLAIN.replace("\n", "\r\n", 1),
    "a byte order mark": "\ufeff" + PLAIN,
    "blank lines": PLAIN.replace("\n", "\n\n  \n"),
    "a blank first line": "\n" + PLAIN,
    "spaces after objects": PLAIN.replace("\n", "  \n", 1),
    "spaces before objects": " " + PLAIN.replace("\n{", "\n   {"),
    "another order of keys": PLAIN + '{"doc_id": "c", "query_id": "q2", "score": 3}\n',
    "swapped keys": PLAIN.replace('"query_id": "q2", "doc_id": "a"', '"doc_id": "q2", "query_id": "a"'),
    "a key less": PLAIN + '{"query_id": "q2", "doc_id": "c"}\n',
    "a key more": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1, "text": "x"}\n',
    "a key twice": PLAIN + '{"query_id": "q2", "doc_id": "c", "doc_id": "d"}\n',
    "a key twice in every line": PLAIN.replace('"score"', '"doc_id": "z", "score"'),
    "escapes": lines_of('"q1"', '"a"', "1", '"q1"', '"\\u00e9\\n\\"b\\""', "2", '"q1"', '"\\ud800"', "2"),
    "a lone surrogate": lines_of('"q1"', '"a"', "1", '"q1"', '"\\ud800"', "2"),
    "escaped keys": PLAIN + '{"query\\u005fid": "q2", "doc_id": "c", "score": 1}\n',
    "escaped NUL": lines_of('"q1"', '"a\\u0000"', "1"),
    "raw control characters": lines_of('"q1"', '"a\tb"', "1", '"q1"', '"a\x01"', "1"),
    "delete characters": lines_of('"q1"', '"a\x7fb"', "1"),
    "other scripts": lines_of('"q漢"', '"é"', "1", '"qé"', '"漢"', "2"),
    "several objects a line": PLAIN + PLAIN.replace("}\n", "} ").strip() + "\n",
    "objects over several lines": PLAIN + '{"query_id": "q2",\n"doc_id": "c", "score": 1}\n',
    "damaged": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1\n' + PLAIN,
    "no objects": PLAIN + "[1]\n",
    "text after an object": PLAIN + '{"query_id": "q2", "doc_id": "c", "score": 1} x\n',
    "an overlapping end": '{"query_id": "q", "score": 1, "doc_id": "a"}\n{"query_id": "q", "score": 1, "doc_id": "}\n',
    "whole ids": lines_of("12", "7", "2", "12", "8", "1", "13", "7", "5"),
    "negative ids": lines_of("-12", "-7", "2", "-0", "-0", "1"),
    "ids with leading zeros": lines_of("12", "7", "2", "012", "8", "1"),
    "ids with a point": lines_of("12", "7", "2", "12.0", "8", "1"),
    "passages with a point": lines_of("12", "7", "2", "12", "8.0", "1"),
    "ids with an exponent": lines_of("12", "7", "2", "12", "1e3", "1"),
    "very long ids": lines_of("12", "7", "2", "12", "9" * 30, "1", "9" * 30, "8", "1"),
    "ids of two types": lines_of('"12"', '"a"', "2", "12", '"b"', "1", '"12"', "7", "0"),
    "truth values": lines_of('"q"', '"a"', "true", '"q"', '"b"', "false"),
    "truth values as ids": lines_of("true", '"a"', "1"),
    "nulls": lines_of('"q"', '"a"', "1", '"q"', '"b"', "null", '"q"', "null", "1"),
    "nested values": lines_of('"q"', '"a"', "1", '"q"', '["b"]', "1", '{"x": "q"}', '"b"', "1"),
    "numbers as text": lines_of('"q"', '"a"', '"1.5"', '"q"', '"b"', '"0.5"'),
    "odd numbers as text": lines_of('"q"', '"a"', '" 1_0 "', '"q"', '"b"', '"x"'),
    "numbers JSON lacks": lines_of('"q"', '"a"', "1", '"q"', '"b"', ".5"),
    "numbers that end in a point": lines_of('"q"', '"a"', "1", '"q"', '"b"', "5."),
    "a point before an exponent": lines_of('"q"', '"a"', "1", '"q"', '"b"', "5.e1"),
    "a plus sign": lines_of('"q"', '"a"', "1", '"q"', '"b"', "+5"),
    "two signs": lines_of('"q"', '"a"', "1", '"q"', '"b"', "--5"),
    "exponents": lines_of('"q"', '"a"', "1e3", '"q"', '"b"', "5E-2", '"q"', '"c"', "-1.25e+2"),
    "NaN": lines_of('"q"', '"a"', "1", '"q"', '"b"', "NaN"),
    "infinity": lines_of('"q"', '"a"', "1", '"q"', '"b"', "-Infinity"),
    "text without quotation marks": lines_of('"q"', '"a"', "1", '"q"', '"b"', "x"),
    "spaces around values": PLAIN.replace("2.5", " 2.5  "),
    "digits apart": lines_of('"q"', '"a"', "1", '"q"', '"b"', "1 2"),
    "empty texts": lines_of('"q"', '"a"', "1", '"q"', '""', "1"),
    "long numbers": lines_of('"q"', '"a"', "0.1000000000000000055511151231257827", '"q"', '"b"', "9007199254740993"),
    "scattered": lines_of('"q1"', '"a"', "1", '"q2"', '"a"', "1", '"q1"', '"b"', "7"),
    "zeros": lines_of(
        *(
            cell
            for i, n in enumerate(["0", "-0", "0.5", "-0.5", "0.0", "0e1", "-0E-1", "10"])
            for cell in ('"q"', f'"{i}"', n)
        )
    ),
    "two zeros": lines_of('"q"', '"a"', "1", '"q"', '"b"', "00"),
    "a negative zero before a digit": lines_of('"q"', '"a"', "1", '"q"', '"b"', "-01"),
    "a zero before a digit and a point": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "01.5"),
    "a sign alone": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "-"),
    "a point after a sign": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "-.5"),
    "an exponent without digits": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "1e"),
    "an underscore": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "1_0"),
    "digits of other scripts": lines_of('"q"', '"a"', "1.5", '"q"', '"b"', "\u0661"),
    "numbers of different lengths": lines_of(
        *(cell for i in range(1, 24) for cell in ('"q"', f'"{i}"', f"{'123456789' * 3}"[:i] + ".5" * (i % 2)))
    ),
    "ids of different lengths": lines_of(
        *(cell for i in range(1, 27) for cell in ("9876543210" * 3)[:i] for cell in (cell, ("12345678" * 4)[:i], "1"))
    ),
    "a letter late in an id": lines_of("1", "2", "3", "1", "123456789x", "2"),
    "a point late in an id": lines_of("1", "2", "3", "1", "1234567890.5", "2"),
    "a long negative id": lines_of("1", "2", "3", "1", "-" + "1" * 30, "2"),
    "values that look like keys": lines_of('"query_id"', '", "', "1", '": "', '"doc_id"', "2", '"}"', '"{"', "3"),
    "another key of the same length": PLAIN + '{"query_id": "q2", "dac_id": "b", "score": 1}\n',
    "a text for a number": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": "1"}\n',
    "a number for a text": PLAIN + '{"query_id": "q2", "doc_id": 7, "score": 1}\n',
    "numbers first": "".join(f'{{"score":{i},"rank":{9 - i},"doc_id":"d{i}","query_id":"q"}}\n' for i in range(5)),
    "numbers only": "".join(f'{{"query_id":{i // 3},"doc_id":{i},"score":{9 - i}}}\n' for i in range(7)),
    "an object that is not closed": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": 1\n',
    "an object that is not closed at the end": PLAIN + '{"query_id": "q2", "doc_id": "b", "score": 1',
    "a beginning at the end": PLAIN + '{"query_id": "',
    "two objects in a line": PLAIN.replace("}\n", "} ", 1),
    "line ends of Windows, the last without": PLAIN.replace("\n", "\r\n").strip(),
    "two carriage returns": PLAIN.replace("\n", "\r\r\n"),
    "keys in other scripts": PLAIN.replace('"score"', '"日本": "x", "score"'),
    "another key of the query": lines_of('"q"', '"a"', "1", '"q"', '"b"', "2")
    + '{"kuery_id": "q", "doc_id": "b", "score": 1}\n',
    "a tab in a later text": PLAIN + lines_of('"q2"', '"b\tc"', "1"),
    "a line end in a later text": PLAIN + lines_of('"q2"', '"b\nc"', "1"),
    "an empty number": PLAIN + lines_of('"q2"', '"b"', ""),
    "an empty number between others": '{"query_id":1 ,"doc_id":2,"score":3}\n{"query_id":,"doc_id":2,"score":3}\n',
    "values closer than in the first line": "".join(
        f'{{"score": 1, "query_id": 2, "doc_id": {passage}}}\n' for passage in ("3 ", "")
    ),
    "spaces in the first line": lines_of("1", "2", "3" + " " * 90) + lines_of("1", "4", "2"),
    "long keys in the first line": PLAIN.replace("doc_id", "s" * 90 + '": 1, "doc_id')
    + '{"query_id": "", "b": 1, "a": "", "c": 1}\n',
    "numbers as text, one of them empty": lines_of('"q"', '"a"', '"1"', '"q"', '"b"', '""'),
    "a query of blank text": lines_of('"q"', '"a"', "1", '" "', '"b"', "1"),
    "two grades": lines_of('"q1"', '"a"', "1", '"q2"', '"a"', "1", '"q1"', '"a"', "2"),
    "negative grades": lines_of('"q1"', '"a"', "1", '"q2"', '"a"', "-1"),
    "grades with a point": lines_of('"q1"', '"a"', "1", '"q2"', '"a"', "2.0", '"q2"', '"b"', "2.5"),
    "sides": "".join(
        json.dumps({"rank": i, "query_id": "q", "text": "x y, {z}", "doc_id": f"d{i}", "score": 1 / i, "tokens": 7})
        + "\n"
        for i in range(1, 5)
    ),
    "odd sides": PLAIN.replace('"score"', '"query": 1.5, "grade": 3, "score"') + lines_of('"q"', '"a"', "1"),
    "wrong sides": PLAIN.replace('"score": 1}', '"score": 01}'),
    "sides that are no numbers": "".join(
        f'{{"query_id": "q", "doc_id": "d", "took": {took}, "score": 1}}\n' for took in ("1", "2", "01", "3")
    ),
}


@pytest.mark.parametrize("text", AWKWARD_JSON.values(), ids=AWKWARD_JSON.keys())
@pytest.mark.parametrize("last", ["score", "grade"])
def test_json_lines_as_columns_are_those_of_the_cells(tmp_path, block, text, last) -> None:
    path = tmp_path / "table.jsonl"
    path.write_bytes(text.replace('"score"', f'"{last}"').encode("utf-8", "surrogatepass"))
    assert_alike(path)


def test_lines_that_are_not_utf8_are_refused_in_sides_too(tmp_path) -> None:
    path = tmp_path / "table.jsonl"
    sides = PLAIN.replace('"score"', '"text": "x", "score"').encode()
    for text in (sides.replace(b'"x"', b'"\xff"', 2), sides + sides.replace(b'"x"', b'"\xff"')):
        path.write_bytes(text)
        assert_alike(path)


@pytest.mark.parametrize("last", ["score", "grade"])
@pytest.mark.parametrize(
    "odd", [None, '"doc_id": "", "score": 1', '"doc_id": "\\u00e9", "score": 7', '"doc_id": "x", "score": ""']
)
def test_json_lines_cut_between_queries_are_those_of_the_cells(tmp_path, monkeypatch, last, odd) -> None:
    path = tmp_path / "table.jsonl"
    for size in (150, 400, 1000):
        monkeypatch.setattr(opening, "_BLOCK", size)
        for depth, place in ((1, 50), (3, 97), (7, 1), (40, 60)):
            lines = [f'{{"query_id": "q{i // depth}", "doc_id": "d{i}", "{last}": {i % 5}}}\n' for i in range(100)]
            if odd is not None:
                lines[place] = f'{{"query_id": "q{place // depth}", {odd}}}\n'.replace("score", last)
            path.write_text("".join(lines))
            assert_alike(path)


REGULAR = {
    "plain": PLAIN,
    "numbers": AWKWARD_JSON["whole ids"] + AWKWARD_JSON["ids with leading zeros"].partition("\n")[0],
    "sides": AWKWARD_JSON["sides"],
    "zeros": AWKWARD_JSON["zeros"],
    "ids of different lengths": AWKWARD_JSON["ids of different lengths"],
    "values that look like keys": AWKWARD_JSON["values that look like keys"],
    "numbers only": AWKWARD_JSON["numbers only"],
    "line ends of Windows": AWKWARD_JSON["line ends of Windows, the last without"],
    "negative numbers": lines_of('"q"', '"a"', "-0.25", '"q"', '"b"', "-12.5", '"q"', '"c"', "-1e-7"),
}


@pytest.mark.parametrize("text", REGULAR.values(), ids=REGULAR.keys())
def test_regular_json_lines_are_read_as_columns(tmp_path, monkeypatch, text) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text, newline="")
    monkeypatch.setattr(JsonLinesChunk, "rows", refuse)
    assert len(whole(JsonLines().read_run(path)).passages) == text.strip().count("\n") + 1
