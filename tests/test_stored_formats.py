"""Stored files carry a format and a version, and are checked when they are read; nothing foreign comes out of them."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import rag_selectivity as rs
from rag_selectivity.advice import decide
from rag_selectivity.grading.exchange import export_labels, import_labels
from rag_selectivity.grading.rubric import Rubric
from rag_selectivity.grading.store import Store
from rag_selectivity.judged.reading import read_qrels
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import Trace, TraceWriter
from rag_selectivity.measures import REGISTRY
from rag_selectivity.people import read_answers
from rag_selectivity.results.stored import read_report
from tests.test_input_limits import READERS, RUBRIC, content
from tests.test_store import put

pytestmark = pytest.mark.inside

LABELS = {f"q{i}": {"a": 1, "b": 0} for i in range(6)}
RUN = {f"q{i}": ["a", "b"] if i % 2 else ["b"] for i in range(6)}


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("report") / "r.json"
    rs.evaluate(LABELS, {"run": RUN}, corpus_size=50, depths=[1, 2]).save(path)
    return json.loads(path.read_text())


def read(tmp_path: Path, report: Any) -> rs.Report:
    (tmp_path / "r.json").write_text(json.dumps(report))
    return read_report(tmp_path / "r.json")


@pytest.mark.parametrize("suffix", ["html", "md", "tex", "csv"])
def test_json_is_not_saved_under_the_suffix_of_another_format(suffix, tmp_path) -> None:
    runs = {"one": RUN, "other": RUN}
    for result in (rs.evaluate(LABELS, runs, depths=[1]), rs.compare(LABELS, runs, depths=[1])):
        with pytest.raises(rs.InputError, match=rf"x.{suffix}: save\(\) writes JSON, .* x.json; to_.*\(\) gives the"):
            result.save(tmp_path / f"x.{suffix}")
        with pytest.raises(rs.InputError, match=r"to_json\(\) gives the text; save\('r.json'\) writes it to a file"):
            result.to_json("r.json")
    assert not list(tmp_path.iterdir())


def test_a_report_reads_back_with_its_decision(tmp_path) -> None:
    runs = {"run": {q: ["a", "b"] for q in LABELS}, "other": {q: ["b", "a"] for q in LABELS}}
    made = rs.evaluate(LABELS, runs, corpus_size=50, depths=[1, 2])
    made = made.with_decision(decide(made, k=2))
    made.save(tmp_path / "r.json")
    found = read_report(tmp_path / "r.json")
    assert (found.to_json(), str(found)) == (made.to_json(), str(made))


@pytest.mark.parametrize("controls", [None, {q: {f"control {q}": 0} for q in LABELS}])
@pytest.mark.parametrize("bootstrap", [None, rs.Bootstrap(resamples=50)])
def test_a_report_without_a_success_reads_back(controls, bootstrap, tmp_path) -> None:
    """It has figures and ends of −∞, for which JSON has null, and what the labels are worth follows from them."""
    options = {"corpus_size": 50, "depths": [1], "measures": ["BoR", "EF"], "bootstrap": bootstrap}
    made = rs.evaluate(LABELS, {"run": {q: ["b"] for q in LABELS}}, controls=controls, **options)
    made.save(tmp_path / "r.json")
    found = read_report(tmp_path / "r.json")
    assert repr(decide(made, k=1).to_rows()[0]["BoR@1"]) == repr(made["BoR@1"].value)
    assert found.trust.standing == made.trust.standing
    assert repr(found.runs["run"].estimates) == repr(made.runs["run"].estimates)


# -- versions ---------------------------------------------------------------------------------------------


def newer(text: str) -> str:
    """The text of a file of a version that does not exist yet."""
    for name, version in (("report", 3), ("trace", 1), ("label", 1), ("rubric", 1), ("origins", 1)):
        text = text.replace(f"rag-selectivity/{name}/{version}", f"rag-selectivity/{name}/{version + 7}")
    return text.replace('"version": 1', '"version": 8')


@pytest.fixture
def stored(tmp_path, report) -> dict[str, Path]:
    """A file of each stored format, of the present version."""
    (tmp_path / "report.json").write_text(json.dumps(report))
    writer = TraceWriter(tmp_path / "trace.jsonl", texts=True)
    writer.write(Retrieval("q1", ["a"]), 0.0)
    writer.close()
    with Store(tmp_path / "labels.db") as store:
        put(store, "m", {("q1", "a"): 3})
        for name in ("labels.jsonl", "labels.csv", "labels.qrels"):
            export_labels(store, tmp_path / name)
    (tmp_path / "rubric.toml").write_text(f'schema = "rag-selectivity/rubric/1"\n{RUBRIC}')
    (tmp_path / "answers.json").write_text(content(READERS["answers"]))
    return {path.name: path for path in tmp_path.iterdir()}


def imported(path: Path) -> None:
    with Store(path.with_name("other.db")) as store:
        import_labels(store, path)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("report.json", read_report),
        ("trace.jsonl", Trace.read),
        ("labels.jsonl", imported),
        ("labels.csv", imported),
        ("labels.jsonl", read_qrels),
        ("rubric.toml", Rubric.read),
        ("answers.json", read_answers),
    ],
)
def test_a_newer_version_is_called_one(stored, name, use) -> None:
    use(stored[name])
    stored[name].write_text(newer(stored[name].read_text()))
    with pytest.raises(rs.InputError, match=rf"{name}.*: made by a newer rag-selectivity \(.*update rag-selectivity"):
        use(stored[name])


# -- the shape of a report --------------------------------------------------------------------------------

FAULTS = [
    (("runs", "run", "measures", "BoR@1", "n"), "6", r"runs\.run\.measures\.BoR@1\.n must be a valid integer, got '6'"),
    (("runs", "run", "measures", "BoR@1", "value"), [], r"BoR@1\.value must be a valid number, got \[\]"),
    (("runs", "run", "fingerprint", "pool"), None, r"fingerprint\.pool must be a valid boolean, got None"),
    (("runs", "run", "per_query", "queries"), ["q0"], r"per_query has 6 labels for 1 queries"),
    (("runs", "run", "per_query", "labels", 2), 5, r"per_query\.labels\[2\] must be a valid string, got 5"),
    (("runs", "run", "notes"), {}, r"runs\.run\.notes must be a valid (tuple|array), got \{\}"),
    (("runs",), [], r"runs must be an object, got \[\]"),
    (("corpus_size",), "many", r"corpus_size must be a valid integer, got 'many'"),
    (("scale",), 3, r"scale must be a valid string, got 3"),
]


@pytest.mark.parametrize(("place", "value", "message"), FAULTS)
def test_a_report_that_does_not_fit_names_the_place_and_the_mend(tmp_path, report, place, value, message) -> None:
    changed = copy.deepcopy(report)
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    with pytest.raises(rs.InputError, match=rf"r\.json: the report is damaged: .*{message}.*; write it again with -o"):
        read(tmp_path, changed)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("name", ["report", "claims", "answers"])
def test_a_number_that_is_not_finite_is_in_no_stored_document(tmp_path, stored, name, literal) -> None:
    reader = READERS[name]
    path = tmp_path / "x.json"
    text = content(reader)
    path.write_text(text)
    reader.read(path)
    # A field that nobody reads is enough: no such file was written by this package.
    path.write_text(f'{{"more": {literal}, {text[1:]}')
    with pytest.raises(rs.InputError, match=rf"x\.json: .*it holds {literal}, which is no finite number"):
        reader.read(path)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", ["trec", "utility"])
def test_every_measure_stays_within_its_ends(tmp_path, scale, seed) -> None:
    chance = random.Random(seed)
    passages = [f"d{i}" for i in range(12)]
    lowest, highest = (0, 3) if scale == "trec" else (1, 5)
    labels = {
        f"q{i}": {each: chance.randint(lowest, highest) for each in chance.sample(passages, chance.randint(1, 12))}
        for i in range(5)
    }
    run = {query: chance.sample(passages, chance.randint(0, 12)) for query in labels}
    names = [name for name, measure in REGISTRY.items() if measure.required_scale in (None, scale)]
    names += ["T(form=code)", "T(alpha=0.9)", "nDCG(gain=exp)", "DCG(gain=exp)"]
    names += ["%PROC(aggregate=ratio)"] if scale == "utility" else []
    report = rs.evaluate(
        labels,
        {"run": run},
        measures=names,
        groups={"d1": "a", "d2": "a", "d3": "b", "d4": "b"},
        corpus_size=40,
        depths=[1, 4],
        scale=scale,
        bootstrap=None,
    ).to_dict()
    assert len(report["runs"]["run"]["measures"]) > 40
    read(tmp_path, report)


def test_figures_of_measures_that_are_not_installed_are_read(tmp_path, report) -> None:
    changed = copy.deepcopy(report)
    measures = changed["runs"]["run"]["measures"]
    measures["OfAnotherPackage@1"] = {**measures["Success@1"], "value": 300}
    assert read(tmp_path, changed).runs["run"].estimates["OfAnotherPackage@1"].value == 300


def test_a_field_that_a_later_release_adds_is_left_alone(tmp_path, report) -> None:
    changed = copy.deepcopy(report)
    changed["surprise"] = changed["runs"]["run"]["surprise"] = {"a": [1]}
    assert read(tmp_path, changed).runs.keys() == {"run"}


def places(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value within a document."""
    if before:
        yield before
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*before, key))


_VALUES = [None, True, -1, 0, 1e308, 2**70, "", "x", "inf", [], {}, [1], [["a"]], {"a": 1}, 1.5, 10**400, "\ud800"]


def mutated(document: Any, chance: random.Random) -> Any:
    """The document with a value replaced, taken away or put into a list."""
    changed = copy.deepcopy(document)
    *way, last = chance.choice(list(places(changed)))
    inside = changed
    for key in way:
        inside = inside[key]
    what = chance.random()
    if what < 0.3:
        del inside[last]
    else:
        inside[last] = [inside[last]] if what > 0.9 else copy.deepcopy(chance.choice(_VALUES))
    return changed


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.is_json])
def test_nothing_but_our_errors_comes_out_of_changed_files(tmp_path, name) -> None:
    reader, chance = READERS[name], random.Random(name)
    document = json.loads(content(reader))
    for i in range(25):
        path = tmp_path / f"{i}{reader.suffix}"
        path.write_text(f"{json.dumps(mutated(document, chance))}\n")
        # A KeyError is the test's own, where the run has another name.
        with suppress(rs.InputError, KeyError if name in ("report", "claims") else rs.InputError):
            reader.read(path)


# -- rubrics ----------------------------------------------------------------------------------------------


def test_a_misspelt_key_of_a_rubric_is_refused(tmp_path) -> None:
    (tmp_path / "r.toml").write_text(f'nmae = "x"\n{RUBRIC}')
    with pytest.raises(rs.InputError, match=r"r\.toml: a rubric has no 'nmae'; did you mean \"name\"\?; it has"):
        Rubric.read(tmp_path / "r.toml")
