"""What adapters share: the figure of one query, the estimate over many, labels and ids in every form."""

import asyncio
import math
from dataclasses import dataclass

import numpy as np
import pytest

import rag_selectivity as rs
from rag_selectivity.grading.judge import JudgeFailure, ModelJudge, Request, Usage
from rag_selectivity.live.watching import Faults
from rag_selectivity.measures import REGISTRY
from rag_selectivity.measures.base import Whole
from rag_selectivity.single import (
    Labels,
    QueryFigure,
    QueryScorer,
    SummedFigure,
    aggregate,
    bits_over_random,
    bits_over_random_of_rows,
    document_ids,
    evaluate_query,
    figures_of_query,
    kept_measures,
    measure_with_depth,
    none_judged,
    per_query_measure,
    query_figures,
    text_id,
)

pytestmark = pytest.mark.inside

SIZE = 500
RANDOM = np.random.default_rng(11)
QUERIES = [f"q{i}" for i in range(40)]
GRADES = {q: {f"d{d}": int(RANDOM.integers(1, 6)) for d in RANDOM.choice(60, 12, replace=False)} for q in QUERIES}
LISTS = {q: [f"d{d}" for d in RANDOM.choice(60, 10, replace=False)] for q in QUERIES}
POOL = {q: [*LISTS[q], *(f"d{d}" for d in range(60) if f"d{d}" not in LISTS[q])][:30] for q in QUERIES}


def figures(measure: str, queries: list[str] = QUERIES) -> list[QueryFigure]:
    return [
        evaluate_query(measure, GRADES[q], LISTS[q], pool=POOL[q], corpus_size=SIZE, scale="utility") for q in queries
    ]


def whole(measure: str, queries: list[str] = QUERIES) -> rs.Report:
    grades, lists, pool = ({q: each[q] for q in queries} for each in (GRADES, LISTS, POOL))
    return rs.evaluate(
        grades, {"r": lists}, pool={"r": pool}, corpus_size=SIZE, scale="utility", measures=[measure], depths=[5]
    )


MEASURES = [
    name if cls(at=None).takes_whole_lists else f"{name}@5"
    for name, cls in REGISTRY.items()
    if isinstance(cls.cutoff, Whole) and not cls.needs_groups
]


@pytest.mark.parametrize("measure", [*MEASURES, "IPrec@.5", "%PROC(aggregate=ratio)@5", "BoR(rel=5,m=2)@10"])
def test_the_figures_of_all_queries_make_the_estimate_of_evaluate(measure) -> None:
    expected = whole(measure)[measure]
    estimate = aggregate(figures(measure))
    assert (estimate.n, estimate.n_total, estimate.reason) == (expected.n, expected.n_total, expected.reason)
    for name in ("value", "low", "high"):
        assert getattr(estimate, name) == pytest.approx(getattr(expected, name), rel=1e-12, nan_ok=True), name


def test_unjudged_queries_count_in_the_total_alone() -> None:
    unjudged = [evaluate_query("Harm@5", Labels.of(GRADES, scale="utility").of_query("nobody"), ["d1"])] * 3
    assert unjudged[0].reason == "nobody judged this query"
    estimate, judged = aggregate([*figures("Harm@5"), *unjudged]), aggregate(figures("Harm@5"))
    assert (estimate.value, estimate.low, estimate.n) == (judged.value, judged.low, judged.n)
    assert (estimate.n_total, judged.n_total) == (43, 40)
    assert aggregate(unjudged).reason == "nobody judged this query"
    assert math.isnan(aggregate(unjudged).value)
    assert aggregate(figures("Harm@5"), total=50).n_total == 50
    assert math.isnan(aggregate(figures("Harm@5"), bootstrap=None).low)
    with pytest.raises(rs.InputError, match="clusters are of queries, whose names these figures do not have"):
        aggregate(figures("Harm@5"), bootstrap=rs.Bootstrap(clusters=dict.fromkeys(QUERIES, 1)))


def test_harm_without_any_junk_in_the_labels_is_undefined_as_in_evaluate() -> None:
    clean = {"q1": {"a": 5}, "q2": {"b": 4}}
    found = [evaluate_query("Harm@1", grades, list(grades), scale="utility") for grades in clean.values()]
    expected = rs.evaluate(clean, {q: list(g) for q, g in clean.items()}, scale="utility", measures=["Harm@1"])
    assert aggregate(found).reason == expected["Harm@1"].reason
    one_junk = evaluate_query("Harm@1", {"c": 1, "d": 5}, ["d"], scale="utility")
    assert (aggregate([*found, one_junk]).value, aggregate([*found, one_junk]).n) == (0.0, 3)


def test_bits_over_random_from_plain_numbers() -> None:
    success, chance = ([figure.value for figure in figures(name)] for name in ("Success@5", "RandomSuccess@5"))
    expected = whole("BoR@5")["BoR@5"]
    estimate = bits_over_random(success, chance)
    for name in ("value", "low", "high", "n"):
        assert getattr(estimate, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert bits_over_random([1.0, math.nan, 1.0], [0.5, 0.5, math.nan], total=9).n == 1
    assert bits_over_random([0.0, 0.0], [0.5, 0.5]).value == -math.inf
    assert bits_over_random([math.nan], [0.5]).reason == "no query has both figures"
    for success, chance in (([1.0], [0.5, 0.5]), ([], [])):
        with pytest.raises(rs.InputError, match=f"success has {len(success)} figures and random_success {len(chance)}"):
            bits_over_random(success, chance)


def test_one_join_serves_several_measures_with_their_details() -> None:
    options = {"scale": "utility", "unjudged": "worst"}
    labels, names = {"a": 5, "b": 1, "c": 3}, ["Harm@2", "RA-nWG@1", "RR"]
    harm, gain, reciprocal = figures_of_query(names, labels, ["b", "x"], details=True, **options)
    assert (harm.value, harm.details["judged"], harm.details["returned"]) == (1.0, 1, 2)
    assert (gain.value, gain.details["w5"], gain.details["G_oracle"]) == (0, 1, 1)
    assert reciprocal.details == {"relevant": 1}
    assert figures_of_query(["RR"], labels, ["b"], **options)[0].details == {}
    with pytest.raises(rs.InputError, match="name the depth, as in Harm@10"):
        evaluate_query("Harm", labels, ["b"], **options)


def test_measures_for_one_query() -> None:
    assert str(measure_with_depth("bor@10")) == "BoR@10"
    assert str(per_query_measure("rr")) == "RR"
    assert str(per_query_measure("harm", needs_depth=False)) == "Harm"
    for measure in ("BoR@10", "EF@2"):
        with pytest.raises(rs.InputError, match="is a ratio of means and has no figure for one query"):
            per_query_measure(measure)


def test_labels_of_a_query_by_its_names_or_by_what_the_framework_brought() -> None:
    @dataclass
    class Dataset:
        relevant_docs: dict[str, list[str]]

    labels = Labels.of({"q1": {"d1": 5}}, scale="utility")
    assert labels.of_query(None, "q1", relevant=["x"]) == labels.of_query("q0", " q1\n") == {"d1": 5}
    assert labels.of_query("q2", relevant=[7]) == {"7": 4}  # relevant, not junk
    assert labels.of_query("q2") is None
    for source in (Dataset({"q": ["d"]}), rs.Qrels.of({"q": {"d": 1}}), [("q", "d", 1)], {"q": ["d"]}):
        assert Labels.of(source).of_query("q") == {"d": 1}
    assert Labels.of({"q": {"d": 1}}, grade_map="0:1,1:5").of_query("q") == {"d": 5}
    assert Labels.of(labels) is labels
    assert Labels.of(None).of_query("q") is None


def test_faults_are_counted_and_an_interrupt_passes(caplog) -> None:
    faults = Faults("a retrieval was not recorded")
    for _ in range(2):
        with faults:
            raise KeyError("url")
    assert faults.count == 2
    assert caplog.text.count("a retrieval was not recorded: 'url'") == 2
    assert caplog.text.count("Traceback") == 1
    with pytest.raises(KeyboardInterrupt), faults:
        raise KeyboardInterrupt
    assert faults.count == 2


def test_a_models_errors_become_failures_by_their_status() -> None:
    from pydantic import BaseModel

    class Refused(Exception):
        status_code = 401

    class Failing(ModelJudge):
        def __init__(self, error: Exception) -> None:
            super().__init__("failing", {"temperature": 0.0})
            self.error = error

        async def complete(self, conversation, schema):
            raise self.error

    class Grade(BaseModel):
        grade: int

    def kind(error: Exception) -> str:
        with pytest.raises(JudgeFailure) as caught:
            asyncio.run(Failing(error).ask(Request([{"role": "user", "content": "?"}], Grade)))
        return caught.value.kind

    assert kind(Refused()) == "fatal"
    assert kind(ConnectionError()) == "server_error"
    assert kind(TimeoutError()) == "timeout"
    assert kind(JudgeFailure("no", "refusal")) == "refusal"

    class Counting(ModelJudge):
        async def complete(self, conversation, schema):
            return '{"grade": 4}', Usage(1, 2)

    reply = asyncio.run(Counting("counting", {}).ask(Request([{"role": "user", "content": "?"}], Grade)))
    assert (reply.content, reply.usage) == ('{"grade": 4}', Usage(1, 2))


# -- hosts -------------------------------------------------------------------------------------------------


def test_kept_figures_of_rows_make_the_bor_of_evaluate() -> None:
    scorer = QueryScorer(*kept_measures("BoR@5", "BoR@2"), labels=GRADES, scale="utility", corpus_size=SIZE)
    rows = [{str(each.measure): each.score for each in scorer.figures(LISTS[q], "no name", q)} for q in QUERIES]
    made = bits_over_random_of_rows(rows)
    more = bits_over_random_of_rows([*rows, {"Success@5": None, "RandomSuccess@5": None}, {"another": 1.0}])
    for name in ("BoR@5", "BoR@2"):
        expected = whole(name)[name]
        assert (made[name].value, made[name].low) == pytest.approx((expected.value, expected.low), rel=1e-12)
        assert more[name].value == pytest.approx(expected.value, rel=1e-12)
        assert (more[name].n, more[name].n_total) == (len(QUERIES), len(QUERIES) + 2)
    with pytest.raises(rs.InputError, match="none of the 1 rows has Success and RandomSuccess at one depth"):
        bits_over_random_of_rows([{"Success@5": 1.0, "RandomSuccess@2": 0.1}])
    with pytest.raises(rs.InputError, match=r"EF@5 is a ratio of means"):
        kept_measures("EF@5")


@pytest.mark.parametrize("measure", ["BoR@5", "RA-nWG@5"])
def test_the_mean_of_summed_figures_is_the_figure_of_evaluate(measure) -> None:
    joined = rs.join(rs.Qrels.of(GRADES), rs.Run.of(LISTS), corpus_size=SIZE, scale="utility")
    figures = query_figures(measure, joined)
    alone = evaluate_query(measure, GRADES["q3"], LISTS["q3"], corpus_size=SIZE, scale="utility")
    assert figures["q3"].value == pytest.approx(alone.value, nan_ok=True)
    assert sum(map(SummedFigure.of, figures.values())) / len(QUERIES) == pytest.approx(whole(measure)[measure].value)


def test_labels_that_a_row_brings_count_where_no_label_knows_the_query() -> None:
    scorer = QueryScorer("RA-nWG@1", labels={"who?": {"d1": 5}}, scale="utility")
    (graded,), (listed,), (known,) = (
        scorer.figures(["d2"], name, relevant=relevant)
        for name, relevant in (("when?", {"d2": 5}), ("when?", ["d2"]), ("who?", {"d2": 5}))
    )
    assert (graded.score, listed.score, known.score) == (1.0, 1.0, 0.0)
    (mapped,) = QueryScorer("RA-nWG@1", scale="utility", grade_map={1: 5}).figures(["d2"], relevant={"d2": 1})
    assert mapped.score == 1.0
    assert graded.counts == {"returned": "1", "judged": "1", "relevant": "1"}
    for nothing in (None, "d2"):
        with pytest.raises(rs.InputError, match=r"holds no retrieval: a list is needed, .* give ids in the list"):
            scorer.figures(nothing, "who?")


def test_documents_that_no_label_can_know_are_refused() -> None:
    assert document_ids([3, {"id": "d1"}, {"text": "Ada"}]) == ["3", "d1", text_id("Ada")]
    documents = [{"id": "a uuid", "metadata": {"source": "d1"}}]
    with pytest.raises(rs.InputError, match='by source, not by id or text: say identity="source"'):
        document_ids(documents, {"d1"})
    assert document_ids(documents, {"d1"}, "source") == ["d1"]
    for texts in ([{"page_content": "Ada"}], [text_id("Ada")]):
        assert document_ids(texts, {text_id("Paris")}) == [text_id("Ada")]
        with pytest.raises(rs.InputError, match=r"name passages by id \('d1'\).* give the ids in outputs"):
            document_ids(texts, {"d1"}, place="outputs")
    with pytest.raises(rs.InputError, match="has no id, no text and no metadata"):
        document_ids([{}])
    with pytest.raises(rs.InputError, match="passage 1, holds None: give a text or a whole number"):
        document_ids([None])


def test_lists_without_a_judged_passage_are_counted_and_named_if_all_are() -> None:
    assert (none_judged("BoR@1", ["0", "2"]), none_judged("BoR@1", [])) == (1, 0)
    with pytest.warns(rs.SelectivityWarning, match="BoR@1: none of the 2 rows retrieved a judged passage"):
        assert none_judged("BoR@1", [0, 0.0]) == 2
