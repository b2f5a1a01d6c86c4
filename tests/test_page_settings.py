"""What is set for `evaluate -o page.html` is used: it is the path of every other output."""

import pytest

from tests.forked_cli import run_command

pytestmark = pytest.mark.contract


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels.trec").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 1\n")
    (tmp_path / "bm25.trec").write_text("q1 Q0 d1 1 2 r\nq1 Q0 d2 2 1 r\nq2 Q0 d2 1 2 r\nq2 Q0 d3 2 1 r\n")
    return tmp_path


def page(folder, *more):
    return run_command("evaluate", "qrels.trec", "bm25.trec", "--corpus-size", 9, "-o", "page.html", *more, cwd=folder)


def test_a_gate_is_checked_and_the_page_is_written(folder) -> None:
    failed = page(folder, "--fail-if", "P@1 < .9")
    assert failed.returncode == 1
    assert "gate failed: bm25: P@1 = 0.5 < 0.9" in failed.stderr
    assert "Gates failed: bm25: P@1 = 0.5 &lt; 0.9. " in (folder / "page.html").read_text()
    assert page(folder, "--fail-if", "P@1 < .5").returncode == 0
    assert "Gates failed" not in (folder / "page.html").read_text()


def test_a_page_with_a_baseline_holds_all_differences_and_what_they_rest_on(folder) -> None:
    (folder / "dense.trec").write_text("q1 Q0 d1 1 2 r\nq2 Q0 d3 2 1 r\n")
    (folder / "by.csv").write_text("query_id,kind\nq1,long\nq2,short\n")
    options = ("--baseline", "bm25", "--by", "by.csv", "-c", "rules.unjudged=worst")
    assert page(folder, "dense.trec", *options).returncode == 0
    text = (folder / "page.html").read_text()
    for said in ("dense compared with bm25: 2 queries", "in all slices, at all depths", '<th scope="col">p Holm'):
        assert said in text
    assert " · unjudged=worst · " in text
    assert "95% intervals of 5,000 resamples, seed 7" in text
    # The curve of precision over recall stands once for each run, and not in each slice.
    assert text.count(">IPrec@0.1<") == 2


def test_a_page_has_no_other_format(folder) -> None:
    refused = page(folder, "--format", "json")
    assert refused.returncode == 2
    assert "page.html is a page: leave --format out" in refused.stderr
    assert not (folder / "page.html").exists()


def test_a_page_of_a_trace_is_refused(folder) -> None:
    (folder / "spans.json").write_text("[]")
    refused = run_command("evaluate", "qrels.trec", "spans.json", "-o", "page.html", cwd=folder)
    assert refused.returncode == 2
    assert "there is no page of a trace" in refused.stderr
