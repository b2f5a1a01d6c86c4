"""A corpus that is read once, beside `read_texts`, over files that are awkward to read."""

from __future__ import annotations

import gzip
import json
from functools import partial

import pytest

import rag_selectivity as rs
from rag_selectivity.data.forms import AS_THEY_ARE, IdForm
from rag_selectivity.io.corpus_file import CorpusFile
from rag_selectivity.io.json_lines import json_rows
from rag_selectivity.io.json_objects import json_objects
from rag_selectivity.io.lengths import estimated_tokens
from rag_selectivity.io.opening import text_lines
from rag_selectivity.io.reading import read_corpus_ids
from rag_selectivity.io.texts import read_texts
from rag_selectivity.render.explorer.texts import LEAST, texts_with_room

FILES = {
    "plain": b'{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two"}\n',
    "titles": b'{"_id": "d1", "title": "T", "text": "T of it"}\n{"_id": "d2", "title": "", "text": "x"}\n'
    b'{"_id": "d3", "title": "only a title", "text": ""}\n{"_id": 4, "title": "and none"}\n',
    "byte order mark, blank lines and returns": b'\xef\xbb\xbf{"_id": "d1", "text": "one"}\r\n\r\n   \n'
    b'{"_id": "d2", "contents": "\xc3\xa9t\xc3\xa9"}\n\n{"Body": "\\ud83d\\ude00 \\n", "_id": "d3"}',
    "columns that change": b'{"_id": "d1", "text": "one", "body": "no"}\n{"body": "yes", "_id": "d2"}\n',
    "an id twice": b'{"_id": "d1", "text": "first"}\n{"_id": "d1", "text": "the second one"}\n',
    "a query id too": b'{"docid": "d1", "query_id": "q1", "text": "x"}\n{"docid": "d2", "qid": "q1", "text": "y"}\n',
    "an empty text": b'{"_id": "d1", "text": ""}\n{"_id": "d2", "text": "two"}\n',
    "no text": b'{"_id": "d1", "text": "one"}\n{"_id": "d2", "other": 3}\n',
    "a number for a text": b'{"_id": "d1", "text": 7}\n{"_id": "d2", "text": "two"}\n',
}


def told(read) -> object:
    """What is read, or the error."""
    try:
        return read()
    except rs.InputError as error:
        return str(error)


def quick(corpus, wanted, form) -> list[tuple[str, str]]:
    return list(corpus.texts(wanted, form))


def slow(path, wanted, form) -> list[tuple[str, str]]:
    return [row for row in read_texts(path, "corpus") if form(row[0]) in wanted]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FILES)
def test_ids_lengths_and_texts_are_those_of_the_slow_reader(tmp_path, name, packed) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(gzip.compress(FILES[name]) if packed else FILES[name])
    corpus = CorpusFile(path)
    assert corpus.ids == list(read_corpus_ids(path))
    assert told(lambda: estimated_tokens(corpus)) == told(lambda: estimated_tokens(path))
    for form in (AS_THEY_ARE, IdForm.of("casefold,prefix=d")):
        for wanted in ({"d1", "1"}, {"d2", "2", "q1"}, {"d3", "4", "3"}, set(map(form, corpus.ids))):
            assert told(partial(quick, corpus, wanted, form)) == told(partial(slow, path, wanted, form))


def test_tables_and_folders(tmp_path) -> None:
    (tmp_path / "corpus.csv").write_text('_id,title,text\nd1,T,"one, two"\nd2,,x\n', encoding="utf-8")
    corpus = CorpusFile(tmp_path / "corpus.csv")
    assert list(corpus.characters()) == [("d1", 10), ("d2", 1)]
    assert list(corpus.texts({"d1"}, AS_THEY_ARE)) == [("d1", "T\none, two")]
    (tmp_path / "corpus.jsonl").write_bytes(FILES["plain"])
    assert list(CorpusFile(tmp_path).texts({"d2"}, AS_THEY_ARE)) == [("d2", "two")]


@pytest.mark.parametrize("now", [b"", b'{"_id": "d1", "text": "one"}\n[]\n', b'{"_id": "d1", "text": "one"}\n{\n'])
def test_a_file_that_changes_is_an_error(tmp_path, now) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(FILES["plain"])
    corpus = CorpusFile(path)
    path.write_bytes(now)
    with pytest.raises(rs.InputError, match=r"corpus\.jsonl.*has changed while it was read; try again"):
        list(corpus.texts({"d1", "d2"}, AS_THEY_ARE))


@pytest.mark.parametrize("room", [None, 60_000, 30_000, 100])
def test_texts_are_cut_and_then_left_out_where_there_is_no_room(tmp_path, room) -> None:
    corpus = {f"d{i}": str(i % 10) * 4000 for i in range(13)}
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"_id": i, "text": text}) + "\n" for i, text in corpus.items()))
    first, wanted = {"d2", "d11"}, set(corpus) - {"d5"}
    for source in (corpus, CorpusFile(path), path):
        held = texts_with_room(source, "corpus", wanted, first, AS_THEY_ARE, room)
        whole, cut, left = room in (None, 60_000), room == 30_000, room == 100
        assert (held.complete, held.is_cut and held.complete) == (not left, cut)
        expected = first if left else wanted
        assert {i: len(text) for i, text in held.texts.items()} == {
            i: 4000 if whole or i in first else LEAST + 1 for i in expected
        }
        assert all(corpus[i].startswith(text) for i, text in held.texts.items())


LINES = (
    b'{"_id": "d1", "text": "one"}',
    b'{"_id": "d1", "_id": 7, "text": NaN, "more": {"deep": [1, 2.50, "\\u00e9\\ud83d"]}} \t',
    b'  {"_id": "d1"}',
    b'{"_id": "d1"}\r\r',
    b"  \t ",
    b"",
    b'\xef\xbb\xbf{"_id": "d1"}',
    '{"_id": "é\u2028"}'.encode(),
    b'{"_id": "\xff"}',
    b'{"_id": "d1"} {"_id": "d2"}',
    b'{"_id": "d1"},',
    b'{"_id": "d1"',
    b'["_id"]',
    b"3",
    b'"\x00"',
    b"[" * 100_000,
)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_objects_are_those_of_the_line_by_line_reader(tmp_path, end) -> None:
    plain = b'{"_id": "d0", "text": "x"}'
    for i, line in enumerate(LINES):
        for lines in ((line, plain), (plain, line), (plain, line, b"", plain)):
            path = tmp_path / f"{i}.jsonl"
            path.write_bytes(end.join(lines))
            slow = told(lambda path=path: repr(list(json_rows(path, text_lines(path)))))
            assert told(lambda path=path: repr(list(json_objects(path)))) == slow


def test_no_row_before_an_error_is_lost(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}\nno\n')
    rows = json_objects(path)
    assert [next(rows), next(rows)] == [(1, {"a": 1}), (2, {"a": 2})]
    with pytest.raises(rs.InputError, match=r"rows\.jsonl:3: not a JSON object"):
        next(rows)
