"""Completions of the labels are drawn once for all that is shown of some runs: figures, decision and page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.calibrated.ground import Strata
from rag_selectivity.decision import decide
from rag_selectivity.report import report_from_files
from rag_selectivity.sample import write_sample

pytestmark = [pytest.mark.inside, pytest.mark.filterwarnings("ignore::rag_selectivity.SelectivityWarning")]

RUNS = ("bm25", "dense", "reranked")


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture
def drawn(monkeypatch) -> list[tuple[int, ...]]:
    """A row for each set of completions that is drawn."""
    calls: list[tuple[int, ...]] = []
    draws = Strata.draws

    def counted(self, number, seed) -> Iterator:
        calls.append(tuple(seed))
        return draws(self, number, seed)

    monkeypatch.setattr(Strata, "draws", counted)
    return calls


def test_a_report_and_its_decision_share_the_completions_of_tails(sample, drawn) -> None:
    runs = {name: sample / f"{name}.trec" for name in RUNS}
    report = rs.evaluate(sample / "labels.db", runs, corpus_size=1000)
    assert len(drawn) == len(RUNS)
    assert "K: 19" in str(report)
    assert report.to_markdown()
    assert report.details()
    assert report._repr_html_()
    assert len(drawn) == len(RUNS)
    # What was measured before is the same figure, and the others are those of a report of their own.
    decision = decide(report, k=10)
    alone = rs.evaluate(sample / "labels.db", runs, corpus_size=1000, depths=[10], measures=["RA-nWG", "PROC"])
    for line in decision.lines:
        for name in ("RA-nWG", "PROC"):
            assert line.figures[name].estimate.value == alone[line.run, f"{name}@10"].value
        assert line.figures["RA-nWG"].estimate.low == report[line.run, "RA-nWG@10"].low


def test_a_page_shares_them_too(sample, drawn) -> None:
    pytest.importorskip("matplotlib")
    runs = {name: sample / f"{name}.trec" for name in RUNS[:2]}
    report_from_files(sample / "labels.db", runs, corpus_size=1000, bootstrap=rs.Bootstrap(500))
    assert len(drawn) == 2


def test_a_copy_of_a_report_starts_without_them(sample) -> None:
    import pickle

    report = rs.evaluate(sample / "labels.db", {"bm25": sample / "bm25.trec"}, corpus_size=1000, depths=[5])
    again = pickle.loads(pickle.dumps(report.completed))
    assert report.completed.draws
    assert not again.draws
    assert json.loads(report.to_json())
