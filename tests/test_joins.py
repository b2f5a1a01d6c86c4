"""The join of runs with labels: beside a join by hand, and the same figures from dicts, rows, frames and files."""

import gzip
import random
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.advice import read_costs

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

QUERIES = ["q1", "q2", "10", "2", "ü"]
PASSAGES = [*(f"d{i}" for i in range(14)), "q1", "2", "D1", "ä", "é", "z 1", "a.txt"]
SCORES = [0.0, -0.0, 1.0, 1.0 + 1e-9, 2, 2.5, -3.25, float("inf"), float("-inf"), 1e300, 7, 0.1]
POLICIES = [
    {},
    {"scores": "float32"},
    {"ties": "as_given"},
    {"order": "rank"},
    {"unjudged": "condense"},
    {"duplicates": "drop"},
    {"duplicates": "drop", "unjudged": "condense", "ties": "as_given"},
    {"duplicates": "count_once"},
    {"exclude_self": True},
    {"exclude_self": True, "unjudged": "condense", "duplicates": "drop"},
]

grades = st.dictionaries(st.sampled_from(PASSAGES), st.integers(0, 3), max_size=12)
scored = st.lists(st.tuples(st.sampled_from(PASSAGES), st.sampled_from(SCORES)), max_size=15)


def of_queries(values):
    return st.dictionaries(st.sampled_from(QUERIES), values, max_size=5)


def in_rank_order(ranked, policy) -> list[str]:
    """The passages of a list as a policy orders them, by a plain sort."""
    if policy.order == "rank":
        return [passage for passage, _ in ranked]
    key = np.float32 if policy.scores == "float32" else float
    with np.errstate(over="ignore"):
        rows = [(passage, key(score)) for passage, score in ranked]
    if policy.ties == "docid_descending":
        rows.sort(key=lambda row: row[0].encode(), reverse=True)
    return [passage for passage, _ in sorted(rows, key=lambda row: row[1], reverse=True)]


def by_hand(labels, run, policy):
    """(hits as (query, rank, grade, repeated), list lengths, first repeats), list by list."""
    hits, lengths, first_repeats = [], [], []
    for query, judged in labels.items():
        passages = in_rank_order(run.get(query, []), policy)
        if policy.exclude_self:
            passages, judged = [p for p in passages if p != query], {p: g for p, g in judged.items() if p != query}
        rows = [(passage, passage in passages[:place]) for place, passage in enumerate(passages)]
        if policy.duplicates == "drop":
            rows = [row for row in rows if not row[1]]
        if policy.unjudged == "condense":
            rows = [row for row in rows if row[0] in judged]
        lengths.append(len(rows))
        first_repeats.append(next((rank for rank, row in enumerate(rows, 1) if row[1]), 0))
        hits += [(query, rank, judged[p], again) for rank, (p, again) in enumerate(rows, 1) if p in judged]
    return hits, lengths, first_repeats


@settings(max_examples=150, deadline=None)
@given(of_queries(grades), of_queries(scored), st.sampled_from(POLICIES))
def test_a_join_is_that_by_hand(labels, run, rules) -> None:
    policy = rs.Policy(**rules)
    meet = any({p for p, _ in run.get(query, [])} & set(judged) - {query} for query, judged in labels.items())
    if not labels or not set(labels) & set(run) or not meet:
        return
    joined = rs.join(rs.Qrels.of(labels), rs.Run.of(run), scale="trec", policy=policy, ids="exact")
    hits, lengths, first_repeats = by_hand(labels, run, policy)
    queries = joined.queries
    assert [
        (queries[query], rank, grade, again)
        for query, rank, grade, again in zip(
            joined.hits.query.tolist(),
            joined.hits.rank.tolist(),
            joined.hits.grade.tolist(),
            joined.hits.repeated.tolist(),
            strict=True,
        )
    ] == hits
    assert joined.returned.tolist() == lengths
    if rules.get("duplicates") != "drop":
        assert joined.first_repeat.tolist() == first_repeats


def test_a_query_that_is_a_passage_is_left_out_of_lists_labels_and_corpus(tmp_path: Path) -> None:
    """Two arguments of three, each retrieved best for itself: the draw is one of the two others."""
    labels = {"a": {"a": 1, "b": 1}, "b": {"c": 1}}
    run = {"a": {"a": 3.0, "b": 2.0}, "b": {"b": 3.0, "a": 2.0}}
    options = {"corpus": ["a", "b", "c"], "measures": ["Success@1", "RandomSuccess@1", "P@1"], "bootstrap": None}
    report = rs.evaluate(labels, run, exclude_self=True, **options)
    assert [report[key].value for key in ("Success@1", "RandomSuccess@1", "P@1")] == [0.5, 0.5, 0.5]
    assert rs.evaluate(labels, run, **options)["P@1"].value == 0.5
    assert rs.evaluate(labels, run, **options)["RandomSuccess@1"].value == 0.5 * (2 / 3 + 1 / 3)
    with pytest.raises(rs.InputError, match="exclude_self must be True or False, got 'yes'"):
        rs.evaluate(labels, run, exclude_self="yes", **options)


@pytest.mark.parametrize("rules", [{"exclude_self": True}, {"duplicates": "drop"}])
def test_what_a_policy_leaves_out_is_in_no_pool_group_cost_or_list_of_another_query(rules) -> None:
    """A query's own passage, or a copy, stands in its list: each figure is that without it."""
    draw, ids = random.Random(3), [f"p{i}" for i in range(30)]
    labels = {q: {p: draw.randint(1, 5) for p in draw.sample(sorted({*ids} - {q}), 9)} for q in ids}
    without = {q: draw.sample(sorted({*ids} - {q}), 9) for q in ids}
    options, names = {"scale": "utility", "depths": [2], "corpus_size": 99, "pool_depth": 5, **rules}, ["BoR", "PROC"]
    if "exclude_self" in rules:
        options["groups"], names = {p: f"g{i % 9}" for i, p in enumerate(ids)}, [*names, "PROC(distinct=true)"]
    found = []
    for lists in ({q: [row[0], q if len(names) > 2 else row[0], *row[1:]] for q, row in without.items()}, without):
        run = {"r": {q: row[: len(row) - 5] for q, row in lists.items()}}
        report = rs.evaluate(labels, run, pool=lists, measures=names, **options)
        costs = read_costs({"r": report.runs["r"].judged}, run, tokens={p: i for i, p in enumerate(ids)})
        found.append([report.to_rows(), report.runs["r"].input["other_lists"], [costs.at("r", k) for k in (1, 2, 9)]])
    assert repr(found[0]) == repr(found[1])
    with pytest.raises(rs.InputError, match=r'lists\) needs the lists as they are shown, .* unjudged="condense"'):
        rs.evaluate(labels, run, measures=["BoR(null=lists)@2"], scale="utility", unjudged="condense")


# -- any source ------------------------------------------------------------------------------------


def large_run(seed: int, *, kind: str, depth: int = 250) -> dict[str, list[tuple[str, float]]]:
    """Lists of more rows than are read at once: in order, with ties, unsorted, with repeats, or of any length."""
    draw = random.Random(seed)
    run = {}
    for query in range(320):
        size = depth if kind != "short" else draw.randint(1, 2 * depth)
        ids = [f"d{i}" for i in draw.sample(range(3000), size)]
        if kind == "repeats":
            ids[-20:] = ids[:20]
        scores = sorted((draw.random() for _ in ids), reverse=True)
        if kind == "ties":
            scores = [round(score, 1) for score in scores]
        if kind == "unsorted":
            draw.shuffle(scores)
        run[f"q{query}"] = list(zip(ids, scores, strict=True))
    return run


def trec_lines(run) -> list[str]:
    return [
        f"{query} Q0 {passage} {rank} {score!r} the-tag-of-this-run\n"
        for query, ranked in run.items()
        for rank, (passage, score) in enumerate(ranked, 1)
    ]


def figures(labels, run) -> list[tuple]:
    options = {"measures": ["AP", "P@10", "BoR@20", "Judged@50"], "scale": "trec", "corpus_size": 5000}
    report = rs.evaluate(labels, {"run": run}, bootstrap=None, **options)
    return sorted(tuple(map(repr, row.values())) for row in report.per_query())


@pytest.mark.parametrize("kind", ["sorted", "ties", "unsorted", "repeats", "short"])
def test_a_file_of_any_order_gives_the_digits_of_a_dict(kind, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    draw = random.Random(7)
    run = large_run(1, kind=kind)
    labels = {query: {f"d{draw.randrange(3000)}": draw.randint(0, 2) for _ in range(30)} for query in run}
    del labels["q7"], run["q11"]
    expected = figures(labels, run)
    lines = trec_lines(run)
    (tmp_path / "run.trec").write_text("".join(lines))
    assert figures(labels, tmp_path / "run.trec") == expected
    if kind == "sorted":
        (tmp_path / "run.trec.gz").write_bytes(gzip.compress("".join(lines).encode(), 1))
        assert figures(labels, tmp_path / "run.trec.gz") == expected
    draw.shuffle(lines)
    (tmp_path / "shuffled.trec").write_text("".join(lines))
    assert figures(labels, tmp_path / "shuffled.trec") == expected
    if kind in ("ties", "repeats"):
        # A run of blanks is for the exact reader, which holds the whole run.
        (tmp_path / "blanks.trec").write_text("".join(line.replace(" ", "  ", 1) for line in lines))
        assert figures(labels, tmp_path / "blanks.trec") == expected


def test_a_fault_far_down_a_file_is_named(tmp_path: Path) -> None:
    lines = trec_lines(large_run(1, kind="sorted"))
    lines[70_000] = lines[70_000].replace(lines[70_000].split()[4], "high")
    (tmp_path / "run.trec").write_text("".join(lines))
    with pytest.raises(rs.InputError, match=r"run\.trec:70001.*high"):
        rs.evaluate({"q1": {"d1": 1}}, {"run": tmp_path / "run.trec"})


def test_what_is_irregular_far_down_scattered_lists_is_read_or_named(tmp_path: Path) -> None:
    """The scan has seen that the lists are scattered before it comes to the line."""
    run = large_run(1, kind="sorted")
    labels = {query: {f"d{i}": i % 3 for i in range(300)} for query in run}
    expected = figures(labels, run)
    lines = sorted(trec_lines(run), key=lambda line: line.split()[3])
    (tmp_path / "blanks.trec").write_text("".join([*lines[:-1], lines[-1].replace(" ", "  ", 1)]))
    assert figures(labels, tmp_path / "blanks.trec") == expected
    (tmp_path / "high.trec").write_text("".join([*lines[:-1], lines[-1].replace(lines[-1].split()[4], "high")]))
    with pytest.raises(rs.InputError, match=r"high\.trec:80000: .*high"):
        figures(labels, tmp_path / "high.trec")


@pytest.mark.parametrize("scattered", [False, True])
def test_an_id_that_is_none_in_a_large_frame_is_named(scattered) -> None:
    polars = pytest.importorskip("polars")
    run = large_run(1, kind="sorted", depth=320)
    rows = [(query, passage, score) for query, ranked in run.items() for passage, score in ranked]
    if scattered:
        rows.sort(key=lambda row: row[1])
    rows[-1] = (rows[-1][0], "d\0", 0.5)
    frame = polars.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    with pytest.raises(rs.InputError, match=r"row 102400.*NUL"):
        rs.evaluate({"q1": {"d1": 1}}, {"run": frame})


# -- odd values --------------------------------------------------------------------------------------


class _Id(StrEnum):
    """Texts whose hash is that of another text."""

    D1 = "d1"


@pytest.mark.parametrize(
    ("run", "ranked"),
    [
        ({"q": {"d1": "2.5", "d2": 3}}, ["d2", "d1"]),
        ({"q": {_Id.D1: 1.0, "d2": 2.0}}, ["d2", "d1"]),
        ({"q": {np.str_("d1"): 1.0, "d2": np.float32(2)}}, ["d2", "d1"]),
        ({"q": {1: 0.5, "d2": 0.25}}, ["1", "d2"]),
        ({1: {"d1": 0.5}}, ["d1"]),
        ({"q": {"d1": 10**400}}, rs.InputError),
        ({"q": {"d1": None}}, rs.InputError),
        ({"q": {"d1": float("nan")}}, rs.InputError),
        ({"q": {"": 1.0}}, rs.InputError),
        ({"q": ["d\0"]}, rs.InputError),
        ({"q": ["\ud800"]}, rs.InputError),
        ({"": ["d1"]}, rs.InputError),
        ({"q": ["d1"], "r": {"d1": 1.0}}, rs.InputError),
        ({"q": "d1"}, rs.InputError),
        ({"q": {"d1", "d2"}}, rs.InputError),
        ({"q": [True]}, rs.InputError),
        ([("q", "d1", 1.0), ("q", "d2")], rs.InputError),
        ([("q",)], rs.InputError),
    ],
)
def test_odd_runs(run, ranked) -> None:
    if isinstance(ranked, type):
        with pytest.raises(ranked):
            rs.Run.of(run)
        with pytest.raises(ranked):
            rs.evaluate({"q": {"d1": 1}}, {"r": run}, bootstrap=None)
        return
    (found,) = rs.Run.of(run).ordered(rs.Policy()).to_dict().values()
    assert found == ranked
    labels = {next(iter(run)): dict.fromkeys(found, 1)}
    assert rs.evaluate(labels, {"r": run}, measures=["P@1"], bootstrap=None)["r", "P@1"].value == 1


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ({"q": {"d1": True, "d2": np.int64(2)}}, {"q": {"d1": 1, "d2": 2}}),
        ({"q": {"d1": 2.0, "d2": "3"}}, {"q": {"d1": 2, "d2": 3}}),
        ({"q": {"d1": -1, "d2": 3}, "r": {}}, {"q": {"d2": 3}, "r": {}}),
        ({"q": {1: 1, "2": 0}}, {"q": {"1": 1, "2": 0}}),
        ({1: {"d1": 1}}, {"1": {"d1": 1}}),
        ({"q": {_Id.D1: 1}}, {"q": {"d1": 1}}),
        ({"q": {"d1": 0.5}}, None),
        ({"q": {"d1": 1 << 31}}, None),
        ({"q": {"d1": 1 << 70}}, None),
        ({"q": {"": 1}}, None),
        ({"q": {"d\0": 1}}, None),
        ({"": {"d": 1}}, None),
        ({"q": {1: 1, "1": 0}}, None),
    ],
)
def test_odd_labels(labels, read) -> None:
    if read is None:
        with pytest.raises(rs.InputError):
            rs.Qrels.of(labels)
    else:
        assert rs.Qrels.of(labels).to_dict() == read


def test_a_dict_that_changes_later_changes_nothing() -> None:
    labels, run = {"q": {"d1": 1, "d2": 0}}, {"q": ["d1"]}
    qrels, lists = rs.Qrels.of(labels), rs.Run.of(run)
    labels["q"]["d3"] = 1
    run["q"].append("d2")
    assert qrels.to_dict() == {"q": {"d1": 1, "d2": 0}}
    assert lists.to_dict() == {"q": ["d1"]}


def test_a_join_has_the_shares_of_grades_and_says_what_it_was_not_given() -> None:
    labels = rs.Qrels.of({"q1": {"a": 2, "b": 0}, "q2": {"c": 1}, "q3": {"d": 1}})
    judged = rs.join(labels, {"q1": ["x", "a", "b"], "q2": ["c"], "q3": []}, scale="trec")
    assert judged.grades.tolist() == [0, 1, 2]
    # Grades 0, 1 and 2, unjudged, empty.
    expected = [[0, 1, 0, 1, 1], [0, 0, 1, 0, 2], [1, 0, 0, 0, 2], [0, 0, 0, 0, 3]]
    assert (judged.grades_by_rank(4) * 3).round(9).tolist() == expected
    assert (labels.negative, judged.coverage.outside_pool, judged.coverage.missing_from_pool) == (0, 0, 0)
    with pytest.raises(rs.InputError, match=r"^qrels"):
        rs.Qrels.from_records([], queries=[None])
