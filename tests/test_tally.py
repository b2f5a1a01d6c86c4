"""Sums that can be taken anywhere: the same digits whatever the partition, and intervals that hold."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import struct
import warnings
import zlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity.io.reading import read_run
from rag_selectivity.measures import Outcome
from rag_selectivity.measures.chance import _BITS
from rag_selectivity.scale.tally import Tally
from rag_selectivity.statistics.exact_sums import ExactSums
from rag_selectivity.statistics.moments import Moments
from rag_selectivity.statistics.poisson import Draws, query_hashes

pytestmark = pytest.mark.inside

MEASURES = ["Success", "BoR", "BoR_max", "lambda", "RA-nWG", "%PROC", "Harm", "nDCG", "AP", "IPrec"]
FINITE = st.floats(-1e11, 1e11, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-30)


@settings(max_examples=80, deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=40), st.randoms())
def test_sums_are_exact_and_do_not_depend_on_the_order(values, order) -> None:
    exact = float(sum(map(Fraction, values)))
    column = np.array(values)[:, None]
    assert ExactSums.of(column).rounded()[0] == pytest.approx(exact, rel=1e-15, abs=1e-40)
    shuffled = values[:]
    order.shuffle(shuffled)
    cut = order.randrange(len(values) + 1)
    parts = [ExactSums.of(np.array(part)[:, None]) for part in (shuffled[:cut], shuffled[cut:]) if part]
    for part in parts[1:]:
        parts[0].add(part)
    assert (parts[0].limbs == ExactSums.of(column).limbs).all()
    assert parts[0].nearly()[0] == pytest.approx(exact, rel=1e-12, abs=1e-25 * max(map(abs, values)) + 1e-40)


def test_weighted_sums_are_those_of_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    grouped = rng.choice([0.0, 1 / 3, -1e-7, 2.5], 300)
    rows = np.column_stack([rng.random((300, 4)) ** 9, grouped, grouped**3, np.full(300, 0.1), np.zeros(300)])
    weights = rng.integers(0, 9, (20, 300))
    found = ExactSums.weighted(weights, rows).rounded()
    for sample, row in enumerate(weights.tolist()):
        for column in range(rows.shape[1]):
            exact = sum(Fraction(x) * w for x, w in zip(rows[:, column].tolist(), row, strict=True))
            assert found[sample, column] == float(exact)
    for bad in (np.inf, np.nan, 2e12):
        with pytest.raises(rs.InputError, match="cannot be summed exactly"):
            ExactSums.of(np.array([[bad]]))


def test_the_resamples_are_poisson_and_independent() -> None:
    drawn = Draws(query_hashes([f"query-{i}" for i in range(20_000)]), 50, seed=7)[:]
    shares = np.bincount(drawn.ravel(), minlength=8)[:6] / drawn.size
    expected = [math.exp(-1) / math.factorial(k) for k in range(6)]
    assert np.abs(shares - expected).max() < 5 * np.sqrt(0.25 / drawn.size)
    for other in (1, 2, 3, 4, 5, 17):
        correlation = np.corrcoef(drawn[0], drawn[other])[0, 1]
        assert abs(correlation) < 4.5 / np.sqrt(20_000)
    neighbours = np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]
    assert abs(neighbours) < 4.5 / np.sqrt(drawn.size)
    again = Draws(query_hashes(["query-17", "query-3"]), 50, seed=7)[:]
    assert (again == drawn[:, [17, 3]]).all()
    few = Draws(query_hashes(["query-17", "query-3"]), 50, seed=7)
    assert all((few[start : start + 3] == again[start : start + 3]).all() for start in range(0, 50, 3))
    assert (Draws(query_hashes(["query-17"]), 50, seed=8)[:] != drawn[:, [17]]).any()


@pytest.fixture
def cranfield(data):
    return data / "cranfield"


def judged_parts(qrels: dict, run: dict, pieces: list[list[str]]):
    for piece in pieces:
        yield rs.join(
            rs.Qrels.from_dict({q: qrels[q] for q in piece}),
            rs.Run.from_dict({q: run[q] for q in piece if q in run}),
            corpus_size=1400,
            scale="utility",
            part_of_whole=True,
        )


@pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")
@pytest.mark.parametrize("seed", range(4))
def test_real_runs_split_at_random_give_the_digits_of_the_whole(cranfield, seed) -> None:
    qrels = rs.read_qrels(cranfield / "qrels.trec").to_dict()
    run = read_run(cranfield / "runs" / "bm25.trec").to_dict()
    whole = rs.evaluate(
        qrels,
        {"bm25": run},
        corpus_size=1400,
        scale="utility",
        measures=MEASURES,
        depths=[1, 5, 20],
        bootstrap=rs.Bootstrap(method="poisson", resamples=200),
    )
    rng = np.random.default_rng(seed)
    names = rng.permutation(list(qrels))
    cuts = sorted(rng.choice(np.arange(1, len(names)), size=[1, 5, 40, 150][seed], replace=False))
    pieces = [piece.tolist() for piece in np.split(names, cuts)]
    tallies = []
    for judged in judged_parts(qrels, run, pieces):
        tally = Tally(MEASURES, [1, 5, 20], scale="utility", sized=True, resamples=200)
        tally.add(judged)
        tallies.append(Tally.from_bytes(tally.to_bytes()))
    while len(tallies) > 1:  # merged in a random tree
        one, other = sorted(rng.choice(len(tallies), size=2, replace=False))[::-1]
        last = tallies.pop(one)
        tallies[other].merge(last)
    found = tallies[0].report("bm25").runs["bm25"]
    expected = whole.runs["bm25"]
    assert found.evaluated == len(qrels)
    assert set(found.estimates) == set(expected.estimates)
    for key, cell in expected.estimates.items():
        assert repr(found.estimates[key]) == repr(cell), key
    merged = tallies[0].report("bm25")
    for rel in (None, 2, 3, 4, 5):
        assert merged.slots_per_relevant("bm25", rel=rel) == whole.slots_per_relevant("bm25", rel=rel)
    assert len(merged.slots_per_relevant("bm25")) == 3


def test_the_poisson_figures_are_those_of_the_default_and_the_intervals_near(cranfield) -> None:
    measures = ["Success", "BoR", "RA-nWG", "nDCG"]
    options = {"corpus_size": 1400, "scale": "utility", "measures": measures, "depths": [10]}
    where = cranfield / "qrels.trec", {"bm25": cranfield / "runs" / "bm25.trec"}
    default, poisson = rs.evaluate(*where, **options), rs.evaluate(*where, **options, bootstrap="poisson")
    assert poisson.settings == {"method": "poisson", "resamples": 1000, "seed": 7, "level": 0.95}
    for key, cell in default.runs["bm25"].estimates.items():
        found = poisson[key]
        assert found.value == pytest.approx(cell.value, rel=1e-13)
        assert (found.low, found.high) == pytest.approx((cell.low, cell.high), abs=0.12 * (cell.high - cell.low)), key


@pytest.mark.slow
def test_the_poisson_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(11)
    population = np.clip(rng.lognormal(-3, 1, 50_000), 0, 0.9)
    hit_rate = np.clip(4 * population + 0.2, 0, 1)
    truth = math.log2(hit_rate.mean() / population.mean())
    hashes = query_hashes([f"q{i}" for i in range(50_000)])
    inside = 0
    for _ in range(800):
        drawn = rng.permutation(50_000)[:300]
        chance = population[drawn, None]
        success = (rng.random((300, 1)) < hit_rate[drawn, None]).astype(float)
        outcome = Outcome((success, chance, 1 - chance), "-", _BITS)
        low, high = Moments.of(outcome, Draws(hashes[drawn], 400, 7)).interval()
        inside += low[0] <= truth <= high[0]
    assert 0.925 <= inside / 800 <= 0.975


def test_what_does_not_fit_together_is_said() -> None:
    one = Tally(["Success"], [1])
    with pytest.raises(rs.InputError, match=r"they differ in depths \(\[1\] and \[2\]\)"):
        one.merge(Tally(["Success"], [2]))
    with pytest.raises(rs.InputError, match="no queries to report on"):
        one.report()
    data = bytearray(one.to_bytes())
    data[-1] ^= 1
    with pytest.raises(rs.InputError, match="its checksum is wrong"):
        Tally.from_bytes(bytes(data))
    with pytest.raises(rs.InputError, match="not a tally of rag-selectivity"):
        Tally.from_bytes(b"something else entirely")
    empty = Tally.from_bytes(one.to_bytes())
    empty.merge(one)
    assert empty.queries == 0


def test_a_report_without_single_queries_has_all_its_views() -> None:
    tally = Tally(["Success", "BoR", "BoR_max", "RA-nWG", "PROC", "%PROC", "Harm"], [1, 2], scale="utility", sized=True)
    labels = {f"q{i}": {"a": 5, "b": 4, "j": 1} for i in range(5)}
    lists = {f"q{i}": ["a", "j", "b"] if i % 2 else ["j", "b"] for i in range(5)}
    tally.add(
        rs.join(rs.Qrels.from_dict(labels), rs.Run.from_dict(lists), corpus_size=100, scale="utility"),
    )
    report = tally.report("mine")
    assert "mine: 5 queries" in report.details()
    assert report.to_dict()["runs"]["mine"]["queries"]["evaluated"] == 5
    assert report.per_query() == []
    page = report.to_html()
    assert "summed over 5 queries" in page
    assert "At K = 2, 5 queries" in report._repr_html_()
    assert report.to_dataframe().shape[0] == len(report.runs["mine"].estimates)
    assert report.diagnosis("mine", 1).overall in ("retriever-limited", "selection-limited", "healthy")


# -- bytes whose checksum is right and whose content is not --------------------------------------------


def _parts_of(data: bytes) -> tuple[dict, bytes]:
    body = zlib.decompress(data[11:])
    (length,) = struct.unpack("<Q", body[:8])
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def _bytes_of(header: object, arrays: bytes) -> bytes:
    text = json.dumps(header).encode()
    body = zlib.compress(struct.pack("<Q", len(text)) + text + arrays)
    return b"RSTALLY" + struct.pack("<I", zlib.crc32(body)) + body


def _places(value, at=()):
    """The places of all values within a value; of lists, the first and the last item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if not isinstance(value, list) or key in (0, len(value) - 1):
            yield (*at, key)
            yield from _places(item, (*at, key))


@pytest.fixture(scope="module")
def small_tally() -> bytes:
    tally = Tally(["BoR", "RA-nWG"], [1], scale="utility", sized=True, resamples=2)
    labels, lists = {"a": {"d": 5, "e": 1}, "b": {"d": 4, "x": 1}}, {"a": ["d", "f"], "b": ["x", "d"]}
    for judged in judged_parts(labels, lists, [["a", "b"]]):
        tally.add(judged)
    return tally.to_bytes()


def test_a_tally_with_a_wrong_value_anywhere_is_refused_or_has_a_report(small_tally) -> None:
    header, arrays = _parts_of(small_tally)
    refused = 0
    for at in _places(header):
        for wrong in (None, "text", -3, 1 << 70, [[1]], "gone"):
            changed = copy.deepcopy(header)
            inner = functools.reduce(operator.getitem, at[:-1], changed)
            if wrong == "gone":
                del inner[at[-1]]
            else:
                inner[at[-1]] = wrong
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    Tally.from_bytes(_bytes_of(changed, arrays)).report()
            except rs.InputError:
                refused += 1
    assert refused > 500


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header, arrays: (header | {"depths": [1, 2]}, arrays), r"holds what no tally can hold \("),
        (lambda header, arrays: (header | {"queries": "2"}, arrays), "queries must be a whole number ≥ 0, got '2'"),
        (lambda header, arrays: (header, arrays[:-9]), "holds what no tally can hold"),
        (lambda header, arrays: (header | {"resamples": 3}, arrays), "the array resampled is .* and must be"),
        (lambda header, arrays: (header | {"queries": 3}, arrays), "3 queries, and figures of 2"),
        (
            lambda header, arrays: (header | {"relevant": {"labels": [[5, -1]], "best": []}}, arrays),
            r"relevant.labels\[0\]\[1\] must be a whole number ≥ 0, got -1",
        ),
        (lambda header, arrays: ([], arrays), "the header must be an object"),
    ],
    ids=["other depths", "a text", "cut off", "other resamples", "other queries", "relevant", "a list"],
)
def test_what_is_wrong_in_a_tally_is_named(small_tally, change, said) -> None:
    with pytest.raises(rs.InputError, match=f"{said}.*: make it again$"):
        Tally.from_bytes(_bytes_of(*change(*_parts_of(small_tally))))
    no_body = b"RSTALLY" + struct.pack("<I", zlib.crc32(b"no zlib")) + b"no zlib"
    with pytest.raises(rs.InputError, match="holds what no tally can hold"):
        Tally.from_bytes(no_body)


def test_measures_without_a_depth_need_no_other() -> None:
    tally = Tally(["IPrec11"], scale="trec")
    tally.add(rs.join(rs.Qrels.from_dict({"q": {"a": 1, "b": 0}}), rs.Run.from_dict({"q": ["b", "a"]})))
    assert tally.report()["run", "IPrec11"].value == 0.5
