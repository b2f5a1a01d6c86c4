"""The published figures, computed again: each agrees or says why not, and the page shows what is computed."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import published, published_figures
from benchmarks.published import SOURCES, Claim, Row, Source
from benchmarks.published_figures import printed_range

pytestmark = pytest.mark.contract

pytest.importorskip("pydantic", reason="the claims of Ragas need the extra judge")

WITHOUT_DATA = [(source, each) for source in SOURCES for each in source.claims if not each.needs]


def row(shown: str, ours, **options) -> Row:
    return Row(Claim("here", "figure", shown, None, **options), ours)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.title)
def test_what_needs_no_data_is_right_and_what_differs_is_on_the_page(source) -> None:
    page = published.PAGE.read_text(encoding="utf-8")
    rows = [published.row_of(each, published.NO_DATA) for each in source.claims if not each.needs]
    assert [each.claim.what for each in rows if not each.right] == []
    differing = [each for each in rows if each.claim.differs and each.claim.counts]
    assert [each.claim.what for each in differing if f"{each.claim.what} | {each.claim.published}" not in page] == []
    assert source.title in page


@pytest.mark.slow
def test_the_page_is_what_the_command_makes_of_the_data(data, capsys) -> None:
    pytest.importorskip("bm25s")
    assert published.main([str(data)]) == 0
    printed = capsys.readouterr().out
    assert "10 differ for a stated reason, 0 are wrong" in printed
    assert "not run" not in printed
    made = published.PAGE.read_text(encoding="utf-8").partition(published.BEGIN)[2].partition(published.END)[0]
    assert made.strip() in printed


def test_without_data_the_rest_is_run_and_what_is_not_run_is_named(monkeypatch, capsys) -> None:
    some = Source("S", "about", (SOURCES[0].claims[0], Claim("t", "w", "1", math.nan, ("a/b.txt",))))
    monkeypatch.setattr(published, "SOURCES", (some,))
    assert published.main([]) == 0
    printed = capsys.readouterr().out
    assert "not run: needs a/b.txt" in printed
    counts = "2 published figures: 1 agree, 0 differ for a stated reason, 0 are wrong, 1 were not run, for want of data"
    assert counts in " ".join(printed.split())
    with pytest.raises(SystemExit, match="2"):
        published.main(["no/such/folder"])
    assert "no/such/folder: no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"), [({"published": "3%"}, "DOES NOT AGREE"), ({"differs": "x"}, "AGREES, THOUGH")]
)
def test_a_wrong_figure_and_a_wrong_reason_end_the_command_with_1(monkeypatch, capsys, change, said) -> None:
    monkeypatch.setattr(published, "SOURCES", (Source("S", "about", (replace(SOURCES[0].claims[0], **change),)),))
    assert published.main([]) == 1
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shown", "ours", "agrees", "difference"),
    [
        ("4.92", 4.9249, True, "+0.0049"),
        ("4.92", 4.9251, False, "+0.0051"),
        ("4.92", 4.915, True, "−0.0050"),
        ("4.92", math.nan, False, "+nan"),
        ("−1.22", -1.2241, True, "−0.0041"),
        ("~2%", 0.0198, True, "−0.02"),
        ("94%", 0.9451, False, "+0.51"),
        ("1.22", (1.21, 1.23), True, "0"),
        ("1.22", (1.2251, 1.23), False, "+0.0051"),
        ("1.22", (1.20, 1.2151), True, "−0.0049"),
        ("≤0.01", 0.0149, True, ""),
        ("≤0.01", 0.0151, False, ""),
        ("≤0.01", -3.0, True, ""),
        ("healthy", "healthy", True, ""),
        ("healthy", "degraded", False, ""),
    ],
)
def test_agreement_is_by_the_printed_digits(shown, ours, agrees, difference) -> None:
    found = row(shown, ours)
    assert (found.agrees, found.right, found.difference) == (agrees, agrees, difference)
    assert row(shown, ours, differs="a reason").right is not agrees


def test_a_drawn_figure_has_its_own_distance() -> None:
    assert row("1.2297", 1.2331, within=0.005).agrees
    assert not row("1.2297", 1.2348, within=0.005).agrees


def test_ours_is_shown_with_two_decimals_more() -> None:
    assert row("0.85", 0.8523456).shown == "0.8523"
    assert row("94%", (0.9351, 0.9449)).shown == "93.51% to 94.49%"
    assert printed_range("94%") == pytest.approx((0.935, 0.945))
    assert printed_range("100%") == pytest.approx((0.995, 1.0))
    assert printed_range("0.85") == pytest.approx((0.845, 0.855))


def test_every_source_is_named_and_every_difference_has_a_reason() -> None:
    assert len(WITHOUT_DATA) > 80
    for source in SOURCES:
        assert source.title
        assert source.about.endswith(".")
    for source, each in WITHOUT_DATA:
        assert each.where, source.title
    assert all(each.why and each.how for each in published.NOT_REBUILT)


def test_figures_are_computed_by_the_package_alone() -> None:
    path = Path(published_figures.__file__)
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if hasattr(node, "names")]
    modules = {getattr(node, "module", None) or alias.name for node in nodes for alias in node.names}
    assert not modules & {"math", "numpy", "scipy", "scipy.stats"}
    for _, each in WITHOUT_DATA:
        assert isinstance(each.ours, list), each.what
        assert each.ours[0] in published_figures.FIGURES, each.what
