"""The monitor chooses the id by which labels know the passages, and counts retrievals that fail."""

import json
import re
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

import rag_selectivity as rs
from rag_selectivity import Monitor, Retrieval
from rag_selectivity.single import text_id

pytestmark = pytest.mark.contract

LABELS = {f"q{i}": {f"d{i}": 5, "junk": 1} for i in range(300)}


def ids(monitor: Monitor, *names: str, **metadata: str) -> list[str]:
    """As an adapter names passages whose store has given them ids of its own."""
    identity = monitor.identity("auto")
    return [
        identity.id_of({"id": f"store-{name}"}, lambda name=name: f"text {name}", {"source": name, **metadata})
        for name in names
    ]


def ask(monitor: Monitor, numbers: Iterable[int], *, hit: bool = True) -> None:
    for i in numbers:
        shown = ids(monitor, f"d{i}" if hit else "another", "junk" if hit else "x")
        monitor.record(Retrieval(f"q{i}", shown, pool=[*shown, *ids(monitor, "y")]))


def quiet(monitor: Monitor) -> rs.Report:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return monitor.report()


# -- the choice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [3, 50, 120])
def test_the_figures_are_those_of_the_right_identity(asked) -> None:
    auto, explicit = (
        Monitor(LABELS, scale="utility", corpus_size=1000),
        Monitor(LABELS, scale="utility", corpus_size=1000),
    )
    ask(auto, range(asked))
    for i in range(asked):
        explicit.record(Retrieval(f"q{i}", [f"d{i}", "junk"], pool=[f"d{i}", "junk", "y"]))
    assert (auto.traffic.retrievals, auto.traffic.labelled) == (asked, asked)
    report, expected = quiet(auto), explicit.report()
    for key, estimate in expected.runs["live"].estimates.items():
        assert report[key].to_dict() == estimate.to_dict(), key
    assert all(type(id_) is str for each in auto.retrievals for id_ in (*each.shown, *(each.pool or ())))
    counted = min(asked, 50)
    assert report.runs["live"].input["identity"] == {"taken": "source", "labels_found": 2 * counted, "queries": counted}
    assert f"Passages are known by source: {2 * counted} labels found in the first {counted}" in str(
        report.runs["live"].notes
    )


def test_labels_by_text_hash_and_no_labels_at_all() -> None:
    monitor = Monitor({"q1": {text_id("text d1"): 5}}, scale="utility")
    ask(monitor, [1])
    assert quiet(monitor).runs["live"].input["identity"]["taken"] == "text"
    bare = Monitor()
    assert ids(bare, "d1") == ["store-d1"]
    assert bare.identity("auto").id_of({"id": None}, lambda: "Paris", {"source": "d1"}) == text_id("Paris")


def test_threads_lose_nothing_around_the_choice() -> None:
    monitor = Monitor(LABELS, scale="utility", trace=None)
    with ThreadPoolExecutor(6) as executor:
        list(executor.map(lambda i: ask(monitor, range(i, 300, 6)), range(6)))
    report = quiet(monitor)
    assert (report["Success@1"].n, report["Success@1"].value) == (300, 1.0)
    assert (monitor.traffic.retrievals, monitor.traffic.labelled) == (300, 300)


# -- what cannot be decided ------------------------------------------------------------------------


def tie(monitor: Monitor, i: int) -> Retrieval:
    other = {0: f"d{i}", 1: "x"}
    identity = monitor.identity("auto")
    shown = [
        identity.id_of({"id": f"s{i}-{place}"}, lambda: "text", {"source": f"d{i}" if place else "y", "page": page})
        for place, page in other.items()
    ]
    return Retrieval(f"q{i}", shown)


def mixed(monitor: Monitor, i: int) -> Retrieval:
    return Retrieval(f"q{i}", ids(monitor, f"d{i}") if i % 2 else ids(monitor, "x", other=f"d{i}"))


def nothing(monitor: Monitor, i: int) -> Retrieval:
    return Retrieval(f"q{i}", ids(monitor, "x", "y"))


def far_below(monitor: Monitor, i: int) -> Retrieval:
    return Retrieval(f"q{i}", ids(monitor, f"d{i}" if i < 5 else "x", "y"))


REASONS = [
    (tie, "find .* labels each"),
    (mixed, "mixed kinds"),
    (nothing, "no label was found"),
    (far_below, "too few labels are found"),
]


@pytest.mark.parametrize(("retrieval", "reason"), REASONS, ids=[made.__name__ for made, _ in REASONS])
def test_what_cannot_be_decided_is_one_warning_and_no_verdict(retrieval, reason, caplog, tmp_path) -> None:
    alarms: list = []
    monitor = Monitor(
        LABELS,
        scale="utility",
        alerts=["Success < 2", "shown > 0"],
        window=1,
        on_alert=alarms.append,
        trace=tmp_path / "t",
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for i in range(120):
            monitor.record(retrieval(monitor, i))
        (text,) = [str(each.message) for each in heard]
        assert re.search(f"^monitor 'live' has no figures: .*{reason}.*\\[ids-do-not-match\\]$", text)
        monitor.flush()
        with pytest.raises(rs.InputError, match=reason):
            monitor.report()
        monitor.close()
        assert len(heard) == 1
    assert len([record for record in caplog.records if "has no figures" in record.message]) == 1
    assert {alarm.condition for alarm in alarms} == {"shown > 0"}
    assert (monitor.traffic.retrievals, monitor.traffic.labelled) == (120, 120)
    assert len((tmp_path / "t").read_text().splitlines()) == 120


def test_a_trace_has_the_chosen_ids_and_the_times_of_the_retrievals(tmp_path) -> None:
    monitor = Monitor(LABELS, scale="utility", trace=tmp_path / "t.jsonl", trace_texts=True)
    monitor.record(Retrieval("unlabelled", ids(monitor, "z"), texts=dict(zip(ids(monitor, "z"), ["Z"], strict=True))))
    assert (tmp_path / "t.jsonl").read_text() == ""
    ask(monitor, range(2))
    monitor.close()
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [(row["query"], row["shown"]) for row in rows] == [
        ("unlabelled", ["z"]),
        ("q0", ["d0", "junk"]),
        ("q1", ["d1", "junk"]),
    ]
    assert rows[0]["texts"] == {"z": "Z"}
    assert rows[0]["time"] <= rows[2]["time"]


# -- explicit ids that find nothing ----------------------------------------------------------------


def test_ids_that_never_meet_a_label_are_an_error_and_no_alarm() -> None:
    alarms: list = []
    monitor = Monitor(LABELS, scale="utility", corpus_size=9, alerts=["Success < 2"], window=20, on_alert=alarms.append)
    for i in range(9):
        monitor.record(Retrieval(f"q{i}", ["uuid-1", "uuid-2"]))
    monitor.flush()
    monitor.record(Retrieval("q9", ["uuid-1", "uuid-2"]))
    with pytest.warns(rs.SelectivityWarning, match="has no figures so far: not one labelled passage"):
        monitor.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(10, 40):
            monitor.record(Retrieval(f"q{i}", ["uuid-1", "uuid-2"]))
    message = r"labels name 'd0', 'junk', 'd1', the retriever brought 'uuid-1', 'uuid-2'.*exact"
    with pytest.raises(rs.InputError, match=message):
        monitor.report()
    assert alarms == []
    exact = Monitor(LABELS, scale="utility", ids="exact", alerts=["Success < 2"], window=20, on_alert=alarms.append)
    for i in range(40):
        exact.record(Retrieval(f"q{i}", ["uuid-1"]))
    assert (quiet(exact)["Success@1"].value, len(alarms)) == (0.0, 1)
    with pytest.raises(rs.InputError, match="ids: unknown form 'casfold'; did you mean"):
        Monitor(LABELS, scale="utility", ids="casfold")


@pytest.mark.parametrize("form", [None, "prefix=docs/"])
def test_next_names_the_form_in_which_ids_meet_and_the_monitor_takes_it(form) -> None:
    monitor = Monitor(LABELS, scale="utility", corpus_size=9, ids=form)
    for i in range(4):
        monitor.record(Retrieval(f"q{i}", [f"docs/d{i}", "docs/junk"], pool=[f"docs/d{i}", "docs/junk", "y"]))
    report = quiet(monitor) if form else monitor.report()
    said = "live has 'docs/d0', 'docs/junk', 'docs/d1', the qrels have 'd0', 'junk', 'd1'; they match in another form"
    told = f"No passage that live retrieved is judged for its query: {said}. ", 'Mend the ids first: give ids="name"'
    assert all(each in str(report) for each in told) != bool(form)
    assert (report["Success@2"].value, report["Judged@2"].value) == ((1, 1) if form else (0, 0))
