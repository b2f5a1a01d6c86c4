"""Measures as values: what prints parses, and a typo is answered."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_selectivity as rs
from rag_selectivity import InputError, parse_measure
from rag_selectivity.measures import REGISTRY
from rag_selectivity.measures.base import Choice, Real, Whole
from rag_selectivity.measures.chance import BoR

pytestmark = pytest.mark.inside


def values_of(kind: Whole | Real | Choice) -> st.SearchStrategy:
    match kind:
        case Whole(lowest):
            return st.integers(lowest, 10**6)
        case Real(low, high):
            return st.floats(low, min(high, 100.0)).map(lambda x: float(f"{x:.6g}"))
        case Choice(words):
            return st.sampled_from(words)


@st.composite
def measures(draw: st.DrawFn):
    cls = draw(st.sampled_from(sorted(REGISTRY.values(), key=lambda cls: cls.name)))
    values = {item.name: draw(values_of(item.metadata["kind"])) for item in cls.parameters() if draw(st.booleans())}
    try:
        measure = cls(**values)
        return measure @ draw(values_of(cls.cutoff)) if draw(st.booleans()) else measure
    except InputError:
        # Two parameters that exclude each other, or a measure without a depth.
        return cls()


@given(measures())
def test_what_prints_parses_whatever_the_case(measure) -> None:
    assert parse_measure(str(measure)) == measure
    assert repr(measure) == str(measure)
    assert parse_measure(f" {measure} ".replace(measure.name, measure.name.swapcase(), 1)) == measure


#: Defaults and ends of the parameters that are numbers, as the papers and trec_eval have them.
NUMBERS = {
    "RA-nWG PROC %PROC": "alpha=1 0–10, cap4=1 0–1, cap3=.25 0–1, fallback4=1 0–1, fallback3=.2 0–1",
    "RA-nWG PROC %PROC Evidence": "base4=.5 0–1, base3=.1 0–1",
    "Evidence": "enough=3 1–",
    "Success RandomSuccess EF BoR BoR_max": "m=1 1–, rel=None 0–",
    "P R AP RR Rprec IPrec IPrec11 ContextPrecision T lambda": "rel=None 0–",
    "T Fe": "alpha=.5 0–1",
    "F": "alpha=None 0–1, beta=1 0–1e6",
    "Harm": "max_grade=2 1–",
    "ERR": "max_grade=None 1–",
    "RBP": "p=.8 0–.999999",
    "UDCG_grades": "weight=.333 0–10",
}


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for names, some in NUMBERS.items() for name in names.split() for number in some.split(", ")],
)
def test_a_parameter_has_its_default_and_takes_no_number_beyond_its_ends(name, number) -> None:
    words, ends = number.split()
    (parameter, default), (low, high) = words.split("="), ends.split("–")
    item = next(each for each in REGISTRY[name].parameters() if each.name == parameter)
    assert item.default == (None if default == "None" else float(default))
    step = 1 if isinstance(item.metadata["kind"], Whole) else 1e-6
    for beyond in [float(low) - step, *([float(high) + step] if high else [])]:
        with pytest.raises(InputError, match=f"{parameter} must be (a|below)"):
            parse_measure(f"{name}({parameter}={beyond:.7f})" if step < 1 else f"{name}({parameter}={int(beyond)})")
    for end in (low, high):
        assert parse_measure(f"{name}({parameter}={end or 10**9})").name == name


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("bor@10", "BoR@10"),
        (" BoR ( m = 1 ) @ 5 ", "BoR@5"),
        ("BOR_MAX(rel=4,m=2)", "BoR_max(rel=4,m=2)"),
        ("LAMBDA@3", "lambda@3"),
        ("Success()", "Success"),
        ("MAP", "AP"),
        ("map@10", "AP@10"),
        ("MRR(rel=2)@5", "RR(rel=2)@5"),
        ("F1@5", "F@5"),
        ("f1(rel=2)@5", "F(rel=2)@5"),
        ("F@1", "F@1"),
        ("HitRate(m=2)@10", "Success(m=2)@10"),
        ("hit@3", "Success@3"),
        ("hit_rate@2", "Success@2"),
        ("precision@5", "P@5"),
        ("recall@2", "R@2"),
    ],
)
def test_a_name_is_written_as_the_measures_own_without_defaults(text, canonical) -> None:
    assert str(parse_measure(text)) == canonical


def test_reports_show_a_measures_own_name_and_answer_to_both() -> None:
    report = rs.evaluate({"q": {"a": 1}}, {"r": {"q": ["b", "a"]}}, measures=["mrr", "Hit@2", "F1@2"], bootstrap=None)
    assert list(report.to_dict()["runs"]["r"]["measures"]) == ["RR", "Success@2", "F@2"]
    assert report["MRR"] == report["RR"]
    assert "RR" in report.details()
    assert "MRR" not in report.details()


def test_a_further_name_is_listed_nowhere_and_nobody_else_can_have_it() -> None:
    assert "MAP" not in REGISTRY
    assert not {*REGISTRY.aliases} & {*REGISTRY}
    assert {*REGISTRY.aliases.values()} <= {*REGISTRY}
    with pytest.raises(InputError, match="there is a measure 'mrr' already"):
        REGISTRY.add(type("Other", (BoR,), {"name": "mrr"}))


def test_a_measure_is_a_value() -> None:
    assert BoR(rel=4) @ 10 == parse_measure("BoR(rel=4)@10")
    assert len({BoR() @ 10, BoR(at=10), BoR() @ 5}) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Bro@10", "unknown measure 'Bro'; did you mean \"BoR\""),
        ("HitRat@3", 'unknown measure .HitRat.; did you mean "HitRate"'),
        ("F1(beta=2)@5", "F1 says already that beta is 1: leave beta out, or write F\\(beta=…\\)"),
        ("f1(alpha=.3)@5", "f1 says already that beta is 1: leave alpha out"),
        ("BoR(k=3)", r"BoR has no parameter 'k' \(it has: rel, m, null\)"),
        ("lambda(m=2)", r"lambda has no parameter 'm' \(it has: rel\)"),
        ("BoR_opt(rel=2)", r"it has: none"),
        ("BoR@ten", "the depth must be a whole number, got 'ten'"),
        ("BoR@0", "depth @0 must be a whole number ≥ 1"),
        ("BoR(m=two)@5", "m must be a whole number, got 'two'"),
        ("BoR(m=1,m=2)", "m is given twice"),
        ("BoR@1@2", "the depth must be a whole number, got '1@2'"),
        ("", "is not NAME, NAME@K"),
        ("F(alpha=.2,beta=2)@5", "alpha or beta, not both"),
        ("IPrec@-0.5", "must be a number from 0 to 1"),
        ("IPrec@1.5", "must be a number from 0 to 1"),
        ("IPrec@10", r"IPrec: depth @10\.0 must be"),
        ("IPrec11@10", "IPrec11 takes no depth, since it is of the whole list"),
        ("IPrec11@.5", "IPrec11"),
        ("Rprec@5", "Rprec takes no depth"),
        ("RBP(p=1)", "parameter p must be below 1"),
        ("BoR(", "is not NAME, NAME@K"),
    ],
)
def test_mistakes_are_named(text, message) -> None:
    with pytest.raises(InputError, match=message):
        parse_measure(text)


@given(st.text(max_size=20))
def test_any_text_is_a_measure_or_an_input_error(text) -> None:
    with suppress(InputError):
        assert parse_measure(str(parse_measure(text))) == parse_measure(text)
