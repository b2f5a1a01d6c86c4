"""Golden sets: mistakes of users and damaged folders, each an error that says what, where and the mend."""

import json
from pathlib import Path

import pytest

from rag_selectivity.errors import InputError
from rag_selectivity.golden import GoldenSet, build, check, export

pytestmark = pytest.mark.contract

QUERIES = {"q1": "What is RAG?", "q2": "How do I rerank?"}
LABELS = {"q1": {"d1": 5, "d2": 1}, "q2": {"d2": 4}}
CORPUS = {"d1": "RAG is retrieval and generation.", "d2": "A reranker orders."}
OTHERS = {**LABELS, "q2": {"d2": 5}}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    build("s", labels=LABELS, queries=QUERIES, corpus=CORPUS, name="faq", licence="MIT")
    return tmp_path


def content_of(folder: str) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(Path(folder).rglob("*")) if each.is_file()}


# -- folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["s", "s/v1", "s/v1/../v1"])
@pytest.mark.parametrize("form", ["trec", "beir", "ragas", "langsmith", "llama-index"])
def test_an_export_into_a_set_is_refused_and_leaves_it(home, target, form) -> None:
    before = content_of("s")
    with pytest.raises(InputError, match="golden set, whose files an export would replace: name another folder"):
        export("s", target, form)
    assert content_of("s") == before


def test_an_export_replaces_no_file_that_is_there(home) -> None:
    Path("corpus.jsonl").write_text("mine")
    with pytest.raises(InputError, match=r"corpus.jsonl: there is such a file, .* name a new folder"):
        export("s", ".", "beir")
    assert (Path("corpus.jsonl").read_text(), Path("queries.jsonl").exists()) == ("mine", False)


@pytest.mark.parametrize(("form", "id_"), [("trec", "a\u00a0b"), ("trec", "#a"), ("beir", 'a"b')])
def test_an_id_that_readers_of_a_form_would_split_is_refused(home, form, id_) -> None:
    build("odd", labels={"q1": {id_: 5}}, queries=QUERIES)
    with pytest.raises(InputError, match="cannot stand in"):
        export("odd", "out", form)
    assert not Path("out").exists()


def test_a_version_that_lost_its_manifest_is_not_passed_over(home) -> None:
    build("s", labels=OTHERS, queries=QUERIES, corpus=CORPUS)
    Path("s/v2/manifest.json").unlink()
    for act in (
        lambda: GoldenSet.read("s"),
        lambda: build("s", labels=LABELS, queries=QUERIES, corpus=CORPUS),
        lambda: check("s"),
    ):
        with pytest.raises(InputError, match=r"v2.manifest\.json: there is no such file"):
            act()
    assert GoldenSet.read("s/v1").version == 1


@pytest.mark.parametrize(("name", "value"), [("corpus", None), ("fingerprint", "0123456789abcdef")])
def test_a_manifest_that_contradicts_the_files_is_damaged(home, name, value) -> None:
    file = Path("s/v1/manifest.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    with pytest.raises(InputError, match=r"manifest\.json: the manifest is damaged: .*make the set again"):
        GoldenSet.read("s")


# -- check and diff ---------------------------------------------------------------------------------------


def test_the_judged_share_is_over_all_queries_of_the_set(home) -> None:
    build("t", labels=LABELS, queries={**QUERIES, "q3": "Something else, which nobody labelled"}, corpus=CORPUS)
    runs = {"mine": {"q1": ["d1", "d2"], "q2": ["d2"], "q3": ["d8", "d9"]}}
    assert check("t", runs=runs, depths=[2]).judged["mine"][2] == 2 / 3
