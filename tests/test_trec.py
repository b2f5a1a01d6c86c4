"""TREC files by columns: the same rows, hits and ranks as line by line, however awkward the file."""

from __future__ import annotations

import gzip
import math
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rag_selectivity.io.trec_fields import PaddedText, decimals

from rag_selectivity import read_qrels
from rag_selectivity.data.id_numbers import IdNumbers
from rag_selectivity.data.ids import IdColumn, rows_that_may_repeat
from rag_selectivity.data.policy import Policy, resolve_policy
from rag_selectivity.data.qrels import Qrels
from rag_selectivity.errors import InputError
from rag_selectivity.io import trec
from rag_selectivity.io.reading import read_run, stream_run
from rag_selectivity.join.facts import JoinFacts
from rag_selectivity.join.joining import join
from rag_selectivity.join.judged_run import JudgedRun

pytestmark = pytest.mark.inside

Row = tuple[str, str, str]  # query, passage, score

# -- the parser ---------------------------------------------------------------------------------------

NUMBERS = (
    "0 1 -1 5. .5 . - -. 1.2.3 1e5 -1e-3 +1 1_0 nan inf -inf Infinity 0x1 00012 1e400 -0.0 --1 1- 12345678 123456789 "
    "123456789012345 1234567890123456 12345678.1234567 1.12345678901234 0.1234567890123456 -12345678.123456 .12345678 "
    "½ \uff11"
)
SCORES = st.sampled_from(NUMBERS.split()) | st.floats(allow_nan=False).map(repr)
RANKS = st.sampled_from(["1", "12", "-3", "x", "123456789", "9" * 19])
IDS = st.text("ab1#é漢\ufeff\u2028\x1c", min_size=1, max_size=20)
LINES = st.tuples(IDS, st.sampled_from(["Q0", "0"]), IDS, RANKS, SCORES)
ENDS = st.sampled_from([" t", " t u", "", "\tt", "  t ", " t\r"])


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(LINES, ENDS), min_size=1, max_size=8), st.sampled_from([" ", "\t", "  "]), st.booleans())
def test_a_block_is_read_as_line_by_line_or_left_to_it(lines, separator, blank) -> None:
    text = "".join(separator.join(fields) + end + ("\n\n" if blank else "\n") for fields, end in lines).encode()
    fast = trec._parse_fast(PaddedText.of(text), 6)
    try:
        slow = trec._parse_slowly(Path("run"), 0, text, 6)
    except InputError:
        assert fast is None
        return
    if fast is None:
        assert any("\x00" in "".join(fields) for fields, _ in lines) or any(
            not _number(fields[4]) or not trec._WHOLE.fullmatch(fields[3].encode()) for fields, _ in lines
        )
        return
    assert list(fast.queries) == list(slow.queries)
    assert list(fast.passages) == list(slow.passages)
    assert list(map(repr, fast.scores.tolist())) == list(map(repr, slow.scores.tolist()))
    assert (fast.ranks is None) == (slow.ranks is None)
    assert fast.ranks is None or fast.ranks.tolist() == slow.ranks.tolist()
    assert fast.remarks == slow.remarks


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.text("12a", min_size=1, max_size=12),
            st.sampled_from(["0", "7", "12", "999", "1000", "12345", "99999999", "-1"]),
            st.floats(-200, 200000, allow_nan=False) | st.integers(0, 9),
            st.sampled_from([0, 1, 2, 6, 6, 7]),
            st.sampled_from(["t", "#", "é"]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([None, 1, 2, 6, 7]),
)
def test_ranks_and_scores_of_one_form_are_read_as_line_by_line(lines, decimals_of_all) -> None:
    text = "".join(
        f"q Q0 {passage} {rank} {score:.{given if decimals_of_all is None else decimals_of_all}f} {tag}\n"
        for passage, rank, score, given, tag in lines
    ).encode()
    fast, slow = trec._parse_fast(PaddedText.of(text), 6), trec._parse_slowly(Path("run"), 0, text, 6)
    assert fast is not None
    assert list(fast.passages) == list(slow.passages)
    assert list(map(repr, fast.scores.tolist())) == list(map(repr, slow.scores.tolist()))
    assert (None if fast.ranks is None else fast.ranks.tolist()) == (
        None if slow.ranks is None else slow.ranks.tolist()
    )


def _number(text: str) -> bool:
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False


def test_decimals_are_the_closest_floats() -> None:
    rng = random.Random(2)
    texts = []
    for _ in range(4000):
        number = rng.choice([rng.gammavariate(4, 3), rng.random(), rng.random() * 2 ** rng.randrange(30)])
        halfway = (Decimal(number) + Decimal(math.nextafter(number, math.inf))) / 2
        texts += [repr(number), f"{number:.6f}", str(halfway)[:20], str(halfway)[:18] + "1", str(rng.randrange(10**18))]
    line = " ".join(["begins", *texts]).encode()
    ends = np.cumsum([len(text) + 1 for text in texts]) + len("begins")
    starts = ends - [len(text) for text in texts]
    values, read = decimals(PaddedText.of(line).cells(), starts + PaddedText.begin, ends + PaddedText.begin)
    assert read.mean() > 0.7
    assert [value for value, known in zip(values.tolist(), read, strict=True) if known] == [
        float(text) for text, known in zip(texts, read, strict=True) if known
    ]


JUDGMENTS = st.tuples(
    IDS, st.just("0"), IDS, st.sampled_from(["0", "1", "5", "-1", "+2", "1_0", "01", "x", "0.5", "999999999", "9" * 12])
)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(JUDGMENTS, st.sampled_from(["", " x", "\r", "\n"])), max_size=8))
def test_judgments_are_read_as_line_by_line(tmp_path_factory, lines) -> None:
    path = tmp_path_factory.mktemp("judgments") / "qrels"
    path.write_text("".join(" ".join(fields) + end + "\n" for fields, end in lines), newline="")
    assert _outcome(lambda: _content(read_qrels(path, format="trec"))) == _outcome(
        lambda: _content(trec._qrels_slowly(path))
    )


def _content(qrels: Qrels) -> object:
    lines = None if qrels._lines is None else qrels._lines.tolist()
    return qrels.to_dict(), qrels.queries, lines, qrels.remarks, qrels.negative, qrels.repeated


def _outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except InputError as error:
        return str(error)


# -- the join -----------------------------------------------------------------------------------------

RNG = random.Random(5)
IDS_OF = {
    "short": lambda i: f"d{i}",
    "long": lambda i: f"folder/of/some/length/{i:03}.html#{i % 3}",
    "unicode": lambda i: f"é漢{i}",
    "numbers": str,
}


def rows(ids="short", scores=lambda: f"{RNG.gammavariate(4, 3):.6f}", lists=12, depth=30, ordered=True) -> list[Row]:
    """Lists of random passages."""
    result = []
    for query in range(lists):
        length = RNG.randrange(depth) if query % 3 else depth
        passages = RNG.sample(range(80), length)
        values = [scores() for _ in range(length)]
        if ordered:
            values.sort(key=float, reverse=True)
        result += [(f"q{query}", IDS_OF[ids](passage), value) for passage, value in zip(passages, values, strict=True)]
    return result


def shuffled(given: list[Row]) -> list[Row]:
    return RNG.sample(given, len(given))


def plain(given: list[Row], separator: str = " ", end: str = "\n", further: str = "") -> bytes:
    ranks: dict[str, int] = {}
    lines = []
    for query, passage, score in given:
        ranks[query] = ranks.get(query, 0) + 1
        lines.append(separator.join([query, "Q0", passage, str(ranks[query]), score, "tag"]) + further + end)
    return "".join(lines).encode()


def halves(content: bytes) -> tuple[bytes, bytes]:
    return content[:1000], content[1000:]


def with_lines(given: list[Row], line: str) -> bytes:
    """With a further line after each third one."""
    lines = plain(given).decode().splitlines(keepends=True)
    return "".join(text + (line if i % 3 == 0 else "") for i, text in enumerate(lines)).encode()


def one_decimal() -> str:
    return f"{RNG.uniform(0, 2):.1f}"


def whole_grade() -> str:
    return str(RNG.randrange(6))


def copies(given: list[Row]) -> list[Row]:
    return [row for i, row in enumerate(given) for row in ([row, (*row[:2], one_decimal())] if i % 7 == 0 else [row])]


FILES: dict[str, bytes] = {
    "plain": plain(rows()),
    "long ids": plain(rows("long")),
    "ids beyond ASCII": plain(rows("unicode")),
    "numbers as ids": plain(rows("numbers")),
    "unsorted": plain(rows(ordered=False)),
    "unsorted, long ids": plain(rows("long", ordered=False)),
    "ties": plain(rows(scores=one_decimal)),
    "ties, long ids": plain(rows("long", one_decimal)),
    "ties, ids beyond ASCII": plain(rows("unicode", one_decimal)),
    "ties, unsorted": plain(rows(scores=one_decimal, ordered=False)),
    "all tied": plain(rows(scores=lambda: "1")),
    "all tied, numbers": plain(rows("numbers", scores=lambda: "0")),
    "grades": plain(rows(scores=whole_grade, ordered=False)),
    "grades, shuffled": plain(shuffled(rows(scores=whole_grade))),
    "shuffled": plain(shuffled(rows())),
    "shuffled, long ids": plain(shuffled(rows("long"))),
    "shuffled, ids beyond ASCII": plain(shuffled(rows("unicode"))),
    "shuffled, ties": plain(shuffled(rows(scores=one_decimal))),
    "shuffled, ties, long ids": plain(shuffled(rows("long", one_decimal))),
    "shuffled, all tied": plain(shuffled(rows(scores=lambda: "2.5"))),
    "repr floats": plain(rows(scores=lambda: repr(RNG.gammavariate(4, 3)))),
    "repr floats, shuffled": plain(shuffled(rows(scores=lambda: repr(RNG.gammavariate(4, 3))))),
    "exponents": plain(rows(scores=lambda: f"{RNG.gammavariate(4, 3):.3e}")),
    "equal as float32": plain(rows(scores=lambda: f"16777216.{RNG.randrange(10)}")),
    "equal as float32, shuffled": plain(shuffled(rows(scores=lambda: f"16777216.{RNG.randrange(10)}"))),
    "negative": plain(rows(scores=lambda: f"-{RNG.gammavariate(4, 3):.6f}")),
    "negative and positive": plain(rows(scores=lambda: f"{RNG.gauss(0, 3):.2f}", ordered=False)),
    "zeros of both signs": plain(rows(scores=lambda: RNG.choice(["0", "-0", "-0.0", "0.0", "1"]))),
    "infinite": plain(rows(scores=lambda: RNG.choice(["inf", "-inf", "1.5", "1e999"]))),
    "whole": plain(rows(scores=lambda: str(RNG.randrange(10**9)))),
    "17 digits": plain(rows(scores=lambda: f"0.{RNG.randrange(10**17):017}")),
    "without a digit before the dot": plain(rows(scores=lambda: f".{RNG.randrange(1000):03}")),
    "tabs": plain(rows(), "\t"),
    "two spaces": plain(rows(), "  "),
    "space at the end": plain(rows(), further=" "),
    "space at the beginning": b"".join(b" " + line for line in plain(rows()).splitlines(keepends=True)),
    "CRLF": plain(rows(), end="\r\n"),
    "CRLF, shuffled": plain(shuffled(rows()), end="\r\n"),
    "no line end at last": plain(rows())[:-1],
    "byte order mark": b"\xef\xbb\xbf" + plain(rows()),
    "blank lines": with_lines(rows(), "\n"),
    "lines of spaces": with_lines(rows(), "  \t\n"),
    "comments": with_lines(rows(), "# a comment\n"),
    "comments of six words": with_lines(rows(), "# b c d 5 f\n"),
    "comments of six words without a space": with_lines(rows(), "#a b c d 5 f\n"),
    "form feeds": plain(rows(), "\f"),
    "ranks with a point": plain(rows()).replace(b" 1 ", b" 1.0 "),
    "gzip": gzip.compress(plain(rows())),
    "gzip of two members": b"".join(gzip.compress(part) for part in halves(plain(rows()))),
    "gzip, shuffled": gzip.compress(plain(shuffled(rows()))),
    "one long list": plain(rows(lists=1, depth=80)),
    "one long list, unsorted": plain(rows(lists=1, depth=80, ordered=False)),
    "lists of one": plain([(f"q{i % 90}", f"d{i}", "1.5") for i in range(90)]),
    "queries that the qrels lack": plain(rows()).replace(b"q1", b"x1"),
    "queries that the qrels lack, shuffled": plain(shuffled(rows())).replace(b"q1", b"x1"),
    "two blocks of each query": plain((lists := rows())[::2] + lists[1::2]),
    "copies": plain(copies(rows())),
    "copies, ties": plain(copies(rows(scores=one_decimal))),
    "copies, shuffled": plain(shuffled(copies(rows(scores=one_decimal)))),
    "ids that share eight bytes": plain([(q, "document" + d, s) for q, d, s in rows(scores=one_decimal)]),
    "ids that end in zeros of a word": plain([(q, "a" * (len(d) + 6), s) for q, d, s in rows(lists=3, depth=2)]),
}
POLICIES = {
    "default": Policy(),
    "trec_eval": resolve_policy("trec_eval"),
    "as given": Policy(ties="as_given"),
    "by rank": Policy(order="rank"),
    "drop": Policy(duplicates="drop"),
    "condense": Policy(unjudged="condense"),
}


def judgments(few: bool) -> dict[str, dict[str, int]]:
    """Of one passage in 3 or 25 of every form of id."""
    rng = random.Random(int(few))
    return {
        f"q{query}": {
            name(passage): rng.randrange(4)
            for name in [*IDS_OF.values(), lambda i: f"documentd{i}", lambda i: "a" * (i % 20 + 1)]
            for passage in rng.sample(range(80), 3 if few else 25)
        }
        for query in range(90)
    }


JUDGMENTS_BY_HAND = judgments(False), judgments(True)


def lines_of(content: bytes) -> list[tuple[str, str, float]]:
    """The rows of a file, by Python's own words."""
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    split = [line.split() for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return [
        (cells[0].decode(), cells[2].decode(), float(cells[4])) for cells in split if cells and cells[0][:1] != b"#"
    ]


def judged_by_hand(
    content: bytes, qrels: dict[str, dict[str, int]], policy: Policy
) -> tuple[list[object], dict[str, int], int]:
    """(query, rank, passage, grade, whether a copy) of every judged row, the lengths of the lists, and the copies."""
    lists: dict[str, list[tuple[str, float]]] = {}
    for query, passage, score in lines_of(content):
        lists.setdefault(query, []).append((passage, float(np.float32(score)) if policy.scores == "float32" else score))
    hits: list[object] = []
    lengths, number = {}, 0
    for query, ranked in lists.items():
        if query not in qrels:
            continue
        if policy.order == "score":
            if policy.ties != "as_given":
                ranked.sort(key=lambda row: row[0].encode(), reverse=True)
            ranked.sort(key=lambda row: -row[1])
        seen: set[str] = set()
        rank = 0
        for passage, _ in ranked:
            copy, judged = passage in seen, passage in qrels[query]
            seen.add(passage)
            number += copy
            if (copy and policy.duplicates == "drop") or (not judged and policy.unjudged == "condense"):
                continue
            rank += 1
            if judged:
                hits.append((query, rank, passage, qrels[query][passage], copy))
        lengths[query] = rank
    return sorted(hits), lengths, number


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize("name", FILES)
def test_hits_ranks_and_lengths_are_those_found_by_hand(name, tmp_path, monkeypatch) -> None:
    path = tmp_path / "run"
    path.write_bytes(FILES[name])
    for i, policy in enumerate(POLICIES.values()):
        labels = JUDGMENTS_BY_HAND[i % 2]
        hits, lengths, copies = judged_by_hand(FILES[name], labels, policy)
        for block in (256, 1 << 19):
            monkeypatch.setattr(trec, "_BLOCK", block)
            judged = join(Qrels.from_dict(labels), stream_run(path), policy=policy, scale="trec", ids="exact")
            assert listed(judged) == hits
            returned = zip(judged.queries, judged.returned.tolist(), strict=True)
            assert {query: length for query, length in returned if length} == {q: n for q, n in lengths.items() if n}
            assert judged.coverage.duplicates == copies


def listed(judged: JudgedRun) -> list[object]:
    """As `judged_by_hand`."""
    hits = judged.hits
    assert np.lexsort((hits.rank, hits.query)).tolist() == list(range(len(hits.query)))
    columns = (column.tolist() for column in (hits.rank, hits.grade, hits.repeated))
    ranks, grades, copies = columns
    queries = [judged.queries[query] for query in hits.query.tolist()]
    passages = judged.qrels.passages.take(hits.judgment)
    return sorted(zip(queries, ranks, passages, grades, copies, strict=True))


def exact(facts: JoinFacts) -> bool:
    """Whether ties are counted as they are in rank order."""
    return facts.tied == facts.neighbours or facts.scored == facts.graded


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize("name", [name for name in FILES if "shuffled" in name])
def test_a_scattered_file_has_the_facts_of_its_grouped_rows(name, tmp_path) -> None:
    path, grouped = tmp_path / "run", tmp_path / "grouped"
    path.write_bytes(FILES[name])
    content = FILES[name]
    lines = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).splitlines(keepends=True)
    grouped.write_bytes(b"".join(sorted(lines, key=lambda line: line.split()[0])))
    qrels = Qrels.from_dict(judgments(False))
    of = [join(qrels, stream_run(file), scale="trec") for file in (path, grouped)]
    facts = [replace(each.facts, tied=each.facts.tied if exact(each.facts) else 0, remarks={}) for each in of]
    assert facts[0] == facts[1]


@pytest.mark.parametrize(
    "broken", ["q1 Q0 d1 1", "q1 Q0 d1 1 x t", "q1 Q0 d1 1 nan t", "q1 Q0 \0 1 2 t", "q1 Q0 d1 1 1_0 t"]
)
@pytest.mark.parametrize("at", [1, 40, 120])
def test_the_wrong_line_is_named(broken, at, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(trec, "_BLOCK", 512)
    lines = plain(rows(depth=40)).decode().splitlines()
    lines.insert(at - 1, broken)
    (tmp_path / "run").write_text("\n".join(lines))
    with pytest.raises(InputError, match=rf"run:{at}: "):
        read_run(tmp_path / "run")


# -- columns ------------------------------------------------------------------------------------------


@given(
    st.lists(st.text("ab", min_size=1, max_size=18), max_size=60),
    st.lists(st.text("abc", min_size=1, max_size=18), max_size=9),
)
def test_ids_are_numbered_in_order_of_first_appearance(first, second) -> None:
    numbers = IdNumbers()
    known: dict[str, int] = {}
    for part in (first, second, [*second, *first]):
        expected = [known.setdefault(name, len(known)) for name in part]
        assert numbers.of(IdColumn.from_strings(part)).tolist() == expected
    assert list(numbers.ids) == list(known)


@given(st.lists(st.integers(0, 40), max_size=80))
def test_rows_whose_keys_repeat(values) -> None:
    keys = np.array(values, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    expected = [row for row, value in enumerate(values) if values.count(value) > 1]
    assert rows_that_may_repeat(keys).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=9), st.sampled_from([1, 4, 11, 1 << 16]))
def test_rows_whose_keys_repeat_within_a_list(lists, few_rows) -> None:
    keys = np.array([(i << 8) + value for i, values in enumerate(lists) for value in values], np.uint64)
    expected = rows_that_may_repeat(keys * np.uint64(0x9E3779B97F4A7C15)).tolist()
    offsets = np.cumsum([0, *map(len, lists)])
    with mock.patch("rag_selectivity.data.ids._FEW_ROWS", few_rows):
        assert rows_that_may_repeat(keys * np.uint64(0x9E3779B97F4A7C15), offsets).tolist() == expected


@given(st.lists(st.text("aé漢", min_size=1, max_size=20), max_size=20), st.data())
def test_a_view_of_a_text_is_the_column_of_its_ids(ids, data) -> None:
    text = b"".join(b"-" + name.encode() for name in ids)
    ends = np.cumsum([len(name.encode()) + 1 for name in ids], dtype=np.int64)
    starts = ends - [len(name.encode()) for name in ids]
    view = IdColumn(np.frombuffer(text + bytes(8), np.uint8), starts.astype(np.int64), ends)
    column = IdColumn.from_strings(ids)
    assert list(view) == list(column) == ids
    assert view.hashes().tolist() == column.hashes().tolist()
    assert view.changes().tolist() == [i for i in range(len(ids)) if i == 0 or ids[i] != ids[i - 1]]
    names, codes = view.factorized()
    assert [names[code] for code in codes] == ids
    assert names == list(dict.fromkeys(ids))
    chosen = np.array(data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=9) if ids else st.just([])), np.int64)
    assert list(view.take(chosen)) == [ids[i] for i in chosen]
    assert view.equal(chosen, column, chosen).all()
    reversed_ids = IdColumn.from_strings(ids[::-1])
    same = [one == other for one, other in zip(ids, ids[::-1], strict=True)]
    assert view.equal_rows(reversed_ids).tolist() == same
    reversed_ids.hashes()
    assert view.equal_rows(reversed_ids).tolist() == same
    assert list(IdColumn.concatenate([view, view.take(chosen)])) == ids + [ids[i] for i in chosen]


QUERIES = st.lists(st.sampled_from(["a", "aa", "b", "#c", " ", ""]) | st.just("a"), max_size=400)


@given(QUERIES, st.integers(0, 40))
def test_a_block_ends_where_another_query_begins(queries, padding) -> None:
    lines = [f"{query} Q0 d{'x' * padding} 1 1 t\n" if query.strip() else f"{query}\n" for query in queries]
    text = "".join(lines).encode()
    given = PaddedText.of(text)
    cut = trec._last_query(given) - given.begin
    before, after = (
        [line.split()[0] for line in part.splitlines() if line.strip() and not line.startswith(b"#")]
        for part in (text[:cut], text[cut:])
    )
    assert cut == 0 or text[cut - 1 : cut] == b"\n"
    assert len(set(after)) <= 1
    assert not before or before[-1] != after[0]


def facts_of(given: list[Row], path: Path, policy: str) -> JoinFacts:
    path.write_bytes(plain(given))
    qrels = Qrels.from_dict({"q0": {"d0": 1}, "q1": {"d1": 1}})
    return join(qrels, stream_run(path), policy=resolve_policy(policy), scale="trec", ids="exact").facts


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize("step", [1, 2], ids=["together", "scattered"])
def test_equal_scores_are_counted_in_rank_order(step, tmp_path) -> None:
    # No two neighbours are equal as they stand; in rank order one pair of each list is.
    given = [(query, f"d{i}", score) for query in ("q0", "q1") for i, score in enumerate(["5", "3", "5"])]
    facts = facts_of([row for start in range(step) for row in given[start::step]], tmp_path / "run", "default")
    assert (facts.scored, facts.graded, facts.neighbours, facts.tied) == (6, 6, 4, 2)


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize("step", [1, 2], ids=["together", "scattered"])
def test_scores_that_only_float32_takes_for_equal_are_not_tied(step, tmp_path) -> None:
    given = [(query, f"d{i}", f"16777216.{i + 1}") for query in ("q0", "q1") for i in range(3)]
    facts = facts_of([row for start in range(step) for row in given[start::step]], tmp_path / "run", "trec_eval")
    assert (facts.neighbours, facts.tied) == (4, 0)
