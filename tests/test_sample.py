"""The sample data set is what its README says, and its files agree with each other."""

import io
import re
import runpy
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import rag_selectivity as rs
from rag_selectivity.errors import InputError
from rag_selectivity.grading.store import Store
from rag_selectivity.sample import folder as sample_folder
from rag_selectivity.sample import write_sample
from rag_selectivity.sample.files.judge import overlap_grade
from rag_selectivity.sample.judges import ERROR_RATE, scripted_grade
from rag_selectivity.sample.rows import FILES, expected, graded_pairs, run, texts
from rag_selectivity.tables.writing import write_whole

pytestmark = pytest.mark.inside

ROOT = Path(__file__).resolve().parents[1]
README = (FILES / "README.md").read_text(encoding="utf-8")
WORDS = " ".join(README.split())
LARGEST = 400_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("sample") / "try"
    write_sample(place)
    return place


def test_it_is_small_enough_for_the_wheel() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in FILES.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(FILES))
    assert len(packed.getvalue()) <= LARGEST


def test_no_text_holds_a_path_of_the_machine_that_made_it() -> None:
    for path in FILES.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert re.findall(r"/(?:root|home|Users)/\S*", path.read_text(encoding="utf-8")) == [], path.name


def test_the_script_makes_the_scripted_files(tmp_path) -> None:
    runpy.run_path(str(ROOT / "docs" / "make_sample.py"))["main"](tmp_path)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 11
    for path in made:
        assert path.read_bytes() == (FILES / path.relative_to(tmp_path)).read_bytes(), path.name


def test_the_readme_names_every_file(folder) -> None:
    named = set(re.findall(r"`([\w./-]+)`", README.split("## The labels")[0]))
    there = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
    assert there - {name.rstrip("/") for name in named} == {"README.md", "PSF-LICENSE.txt"}
    assert {name for name in named if "." in name and "/" not in name and not (folder / name).exists()} == set()
    assert "PSF-LICENSE.txt" in README


def test_the_numbers_of_the_readme_are_those_of_the_labels() -> None:
    pairs = graded_pairs()
    kinds = Counter(pair.drawn.split(":")[0] if pair.drawn.startswith("tail") else pair.drawn for pair in pairs)
    pool = sum(count for kind, count in kinds.items() if ":" in kind)
    assert (pool, kinds["tail"], kinds["control"], kinds["expected"]) == (1899, 180, 180, 11)
    assert "(1,899 pairs)" in WORDS
    same = sum(pair.first == pair.second for pair in pairs) / len(pairs)
    assert f"{same:.1%} of the {len(pairs):,} pairs".replace("%", " %") in WORDS
    assert max(abs(pair.first - pair.second) for pair in pairs) == 1
    assert "none is more than one grade off" in WORDS
    agreed = rs.agree(
        rs.Qrels.from_records((pair.query, pair.passage, pair.first) for pair in pairs),
        rs.Qrels.from_records((pair.query, pair.passage, pair.second) for pair in pairs),
        scale="utility",
    )
    kappa = agreed.agreement.kappa_quadratic
    shown = f"{kappa.value:.3f} [{kappa.low:.3f}, {kappa.high:.3f}]".replace("0.", ".")
    assert f"quadratic kappa {shown}" in WORDS
    wanted = [pair for pair in pairs if expected()[pair.query] == pair.passage]
    assert Counter(pair.first for pair in wanted) == Counter(pair.second for pair in wanted) == {5: 57, 4: 3}
    relevant = Counter(pair.query for pair in pairs if pair.first >= 4)
    assert f"{sum(count == 1 for count in relevant.values())} of the {len(relevant)} questions" in WORDS
    assert f"{len({pair.query for pair in pairs if pair.first == 5})} have a passage of grade 5" in WORDS
    assert sum(pair.first >= 4 for pair in pairs if pair.drawn == "control") == 1
    assert "Of 180 random ones, one was relevant." in WORDS
    alike = sum(
        pair.first == overlap_grade(texts("queries.jsonl")[pair.query], texts("corpus.jsonl")[pair.passage])
        for pair in pairs
    )
    assert f"in {alike / len(pairs):.0%} of the pairs".replace("%", " %") in WORDS


def test_what_was_drawn_is_what_the_runs_hold() -> None:
    lists = {name: run(name) for name in ("bm25", "dense")}
    of_pool = {}
    for pair in graded_pairs():
        if ":" in pair.drawn and not pair.drawn.startswith("tail"):
            for each in pair.drawn.split():
                name, rank = each.split(":")
                assert lists[name][pair.query][int(rank) - 1] == pair.passage
            of_pool.setdefault(pair.query, set()).add(pair.passage)
    assert of_pool == {query: {*lists["bm25"][query][:20], *lists["dense"][query][:20]} for query in of_pool}
    outside = [pair for pair in graded_pairs() if pair.drawn == "control"]
    assert not any(pair.passage in lists[name][pair.query] for pair in outside for name in lists)


def test_the_scripted_annotator_errs_as_often_as_stated() -> None:
    pairs = graded_pairs()
    wrong = [pair for pair in pairs if scripted_grade("scripted", pair) != pair.first]
    assert len(wrong) / len(pairs) == pytest.approx(ERROR_RATE, abs=0.03)
    assert {abs(scripted_grade("scripted", pair) - pair.first) for pair in wrong} == {1}
    assert f"one grade off in {ERROR_RATE:.0%} of pairs".replace("%", " %") in WORDS
    assert {scripted_grade("scripted", pair) for pair in pairs} == {1, 2, 3, 4, 5}


def test_the_label_files_hold_the_same_grades(folder) -> None:
    first = {(pair.query, pair.passage): pair.first for pair in graded_pairs()}
    in_pool = {key for key, pair in zip(first, graded_pairs(), strict=True) if pair.drawn != "control"}
    grades = rs.read_qrels(folder / "grades.trec").to_dict()
    assert {(q, d): g for q, row in grades.items() for d, g in row.items()} == {key: first[key] for key in in_pool}
    for name in ("labels.csv", "labels.jsonl", "beir"):
        assert rs.read_qrels(folder / "formats" / name).to_dict() == grades
    stored = rs.read_qrels(folder / "labels.db").to_dict()
    drawn = {(pair.query, pair.passage): pair.first for pair in graded_pairs() if pair.drawn != "expected"}
    assert {(q, d): g for q, row in stored.items() for d, g in row.items()} == drawn
    with Store(folder / "labels.db") as store:
        (judge,) = store.judges()
    assert judge["origins"] == {"pool": 1899, "tail": 180, "control": 180}


def test_only_a_new_or_empty_folder_is_written(folder, tmp_path) -> None:
    with pytest.raises(InputError, match="give a new or an empty folder"):
        write_sample(folder)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="empty folder"):
        write_sample(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        write_sample(tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_error_names_the_folder_that_was_asked_for(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sample_folder, "_write", lambda folder: write_whole(folder / "below" / "file", ""))
    with pytest.raises(InputError) as raised:
        write_sample(tmp_path / "new")
    assert str(raised.value).startswith(f"{tmp_path / 'new' / 'below' / 'file'}: cannot be written")
    assert "temporary" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_it_is_the_same_at_each_call(folder, tmp_path) -> None:
    write_sample(tmp_path / "again")
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix not in (".db", ".json", ".jsonl"):
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes(), path.name


def test_the_rubric_is_that_of_the_guide() -> None:
    page = (ROOT / "docs" / "how-to" / "labelling.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.S | re.M)
    assert shown == (FILES / "support-desk.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(shown)["levels"]) == set("12345")
