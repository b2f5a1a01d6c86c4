"""Words and figures of one page say the same: what is shown, by which figure, and under which name."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app

pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]


def evaluated(sample: Path, **options) -> rs.Report:
    return rs.evaluate(sample / "labels.db", {"bm25": sample / "bm25.trec"}, corpus_size=1000, **options)


def test_what_controls_show_does_not_hang_on_resamples(sample) -> None:
    with_intervals, without = evaluated(sample), evaluated(sample, bootstrap=None)
    assert "so retrieval beats chance" in " ".join(without.details().split())
    assert "leaves open whether retrieval beats chance" not in without.details()
    assert (without.trust.standing == "nothing") == (with_intervals.trust.standing == "nothing")


def test_controls_leave_nothing_open_of_a_figure_that_there_is_not(sample) -> None:
    """Where lists repeat passages without a rule, BoR is undefined."""
    twice = {query: [id for id in ids for _ in range(2)] for query, ids in rs.read_run(sample / "bm25.trec").lists()}
    text = " ".join(rs.evaluate(sample / "labels.db", twice, corpus_size=1000, depths=[10]).details().split())
    assert "random passages relevant." in text
    assert "leaves open whether" not in text


def test_slices_as_judged_beside_one_with_controls_are_named(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in ("bm25", "dense")}
    found = rs.compare(sample / "labels.db", runs, measures=["BoR"], depths=[5], corpus_size=1000, by="R")
    bases = {part.rows[0].by[1]: part.rows[0].basis for part in found.slices["R"].values() if part.rows[0].n}
    assert set(bases.values()) == {"as judged", "with controls"}
    own = ", ".join(f"BoR@5 of {value}" for value, basis in bases.items() if basis == "as judged")
    assert f"as judged, the other slices with random controls: {own}" in " ".join(found.details().split())


def test_what_labels_cannot_tell_is_no_word_against_an_interval_that_leaves_out_zero(sample) -> None:
    report = rs.evaluate(
        sample / "grades.trec", {"bm25": sample / "bm25.trec"}, corpus_size=1000, depths=[20], scale="utility"
    )
    text = " ".join(report.details().split())
    assert report["BoR@20"].low > 0
    assert "Nothing is shown about the retriever" not in text
    assert "These labels cannot tell the retriever from a random draw" not in text


def test_the_figures_of_a_comparison_give_the_difference_that_it_prints(sample) -> None:
    runs = {name: sample / f"{name}.trec" for name in ("bm25", "dense")}
    found = rs.compare(sample / "labels.db", runs, measures=["RA-nWG"], depths=[10], corpus_size=1000)
    row, completed = found["dense", "RA-nWG@10"], found.report["dense", "RA-nWG@10"]
    assert row.value - row.baseline_value == pytest.approx(row.difference, abs=1e-12)
    assert (row.value, row.basis) == (pytest.approx(completed.as_judged), "as judged")
    assert completed.basis == "with a tail"
    assert row.caveats[0].text.endswith("; the report completes them by a tail.")


def test_a_k_in_letters_is_answered_in_plain_words(tmp_path) -> None:
    (tmp_path / "f.trec").write_text("q 0 a 1\n")
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "f.trec"), "run.trec", "--k", "ten"])
    said = f"{result.output}{result.exception}"
    assert result.exit_code != 0
    assert "--k must be a whole number from 1 up, or auto, got 'ten'" in said
