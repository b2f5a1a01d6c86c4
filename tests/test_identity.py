"""Which id of a retrieved passage the labels mean: candidates, the choice, and every reason not to choose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_selectivity import InputError
from rag_selectivity.single import candidates, passage_identity, text_id
from rag_selectivity.tables.matching import choose_identity

pytestmark = pytest.mark.contract

NESTED = {
    "id": "a",
    "text": "b",
    "auto": "c",
    "page": 3,
    "size": np.int64(7),
    "source": {"id": "d1", "deep": {"er": "e"}},
    "flat.key": "f",
    "flat": {"key": "hidden"},
    "share": 0.5,
    "draft": True,
    "tags": ["x"],
    "nothing": None,
    "empty": "",
    "whole text": "x" * 5000,
}


def test_strings_and_whole_numbers_at_any_depth_are_candidates() -> None:
    assert candidates({"node_id": "n7", "id": None}, lambda: "Paris", NESTED) == {
        "node_id": "n7",
        "metadata.id": "a",
        "metadata.text": "b",
        "metadata.auto": "c",
        "page": "3",
        "size": "7",
        "source.id": "d1",
        "source.deep.er": "e",
        "flat.key": "f",
        "text": text_id("Paris"),
    }


KEYS = st.sampled_from(["id", "text", "auto", "a", "b", "a.b", "metadata", "metadata.id"])
VALUES = st.one_of(st.text(max_size=3), st.integers(), st.none())


@settings(deadline=None)
@given(
    st.fixed_dictionaries({"node_id": st.none() | st.just("n7"), "id": st.none() | st.just("7")}),
    st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=5),
)
def test_every_candidate_is_what_its_name_gives_as_an_explicit_identity(ids, metadata) -> None:
    for name, value in candidates(ids, "Paris", metadata).items():
        assert passage_identity(name, ids=ids, text=lambda: "Paris", metadata=metadata) == value


def test_one_passage_alone_cannot_tell_its_identity() -> None:
    with pytest.raises(InputError, match="name of an id here, such as 'text', got 'auto'"):
        passage_identity("auto", ids={"id": "7"}, text=lambda: "Paris", metadata={})
    with pytest.raises(InputError, match=r"passage has no metadata\['source'\]"):
        passage_identity("source", ids={}, text=lambda: "Paris", metadata={"source": {"id": "d1"}})


def test_metadata_that_holds_itself_has_an_end() -> None:
    endless: dict = {"doc": "d1"}
    endless["self"] = endless
    assert candidates({}, "Paris", endless)["self.doc"] == "d1"
    assert len(candidates({}, "Paris", {f"key {i}": i for i in range(10_000)})) < 1000


def passages(*names: str, **other) -> list[dict[str, str]]:
    """Passages with an id of the store, their document in the metadata, and whatever else."""
    return [
        candidates({"id": f"store-{name}"}, f"text of {name}", {"doc": name, **{k: v(name) for k, v in other.items()}})
        for name in names
    ]


def test_the_id_that_finds_most_labels_is_taken() -> None:
    chosen = choose_identity([({"d1": 1, "d2": 0}, passages("d1", "d2", "d1", "d9")), (["d3"], passages("d3"))])
    assert (chosen.name, chosen.found, chosen.labels, chosen.queries) == ("doc", 3, 3, 2)
    assert chosen.line == "Passages are known by doc: 3 labels found in the first 2 labelled retrievals."
    assert chosen.facts == {"taken": "doc", "labels_found": 3, "queries": 2}


def test_the_choice_rests_on_the_first_fifty_queries() -> None:
    first = [(["d1"], passages("d1"))] * 50
    later = [(["store-d2"], passages("d2"))] * 500
    assert choose_identity([*first, *later]).facts == {"taken": "doc", "labels_found": 50, "queries": 50}


def test_one_id_under_two_names_goes_by_the_framework_s_own() -> None:
    both = [candidates({"node_id": "n1", "ref_doc_id": "d1"}, "x", {"doc": "d1", "source": "d1"})]
    assert choose_identity([({"d1": 1}, both)]).name == "ref_doc_id"


def test_a_name_that_some_passages_lack_yields_to_one_that_all_have() -> None:
    of_all = [candidates({"id": name}, name, {"doc": name}) for name in ("d1", "d2")]
    of_some = [*of_all, candidates({"id": None}, "d3", {"doc": "d3"})]
    assert choose_identity([({"d1": 1, "d2": 1}, of_some)]).name == "doc"


def test_labels_by_text_hash_work() -> None:
    assert choose_identity([({text_id("text of d1"): 5}, passages("d1", "d2"))]).name == "text"


def refused(*observed) -> str:
    with pytest.raises(InputError) as caught:
        choose_identity(observed)
    return str(caught.value)


def test_a_tie_of_different_ids_is_refused() -> None:
    assert refused(({"d1": 1, "d4": 1}, passages("d1", "d2", page=lambda name: {"d2": "d4"}.get(name, "p")))) == (
        "doc and page find 1 label each in the first 1 labelled retrieval, and they are different ids: the labels name "
        "'d1', 'd4', and the passages have doc 'd1', 'd2'; page 'p', 'd4'. Choose one: identity=\"doc\" or "
        'identity="page"'
    )


def test_labels_of_mixed_kinds_are_refused() -> None:
    mixed = {"d1": 1, "d2": 1, "d3": 1, text_id("text of d4"): 1, text_id("text of d5"): 1}
    message = refused((mixed, passages("d1", "d2", "d3", "d4", "d5")))
    assert message.startswith(
        "the labels' ids are of mixed kinds: in the first 1 labelled retrieval, doc finds 3 labels, and text finds 2"
    )
    assert message.endswith('or use one kind only: identity="doc"')
    one_stray = {"d1": 1, "d2": 1, "d3": 1, text_id("text of d4"): 1}
    assert choose_identity([(one_stray, passages("d1", "d2", "d3", "d4"))]).name == "doc"


def test_many_labels_may_have_a_tenth_that_only_another_id_finds() -> None:
    by_doc = [({f"d{i}": 1 for i in range(10)}, passages(*(f"d{i}" for i in range(10))))] * 4
    stray = ({text_id("text of d1"): 1}, passages("d1"))
    assert choose_identity([*by_doc, *[stray] * 3]).found == 40
    assert "mixed kinds" in refused(*by_doc, *[stray] * 4)


def test_nothing_found_shows_both_sides() -> None:
    message = refused(({"doc 7": 1}, passages("d1", "d2", "d3", "d4")))
    assert "no label was found among the 4 passages retrieved in the first 1 labelled retrieval" in message
    assert "the labels name 'doc 7'" in message
    assert "id 'store-d1', 'store-d2', 'store-d3'; doc 'd1', 'd2', 'd3'; text 'text:" in message
    assert message.endswith("(how-to: ids-do-not-match)")
    assert "identity=" not in message  # every name was tried
    assert "no passage at all was retrieved in the first 1 labelled retrieval" in refused(({"d1": 1}, []))


def test_a_match_far_below_what_the_labels_promise_is_refused() -> None:
    def asked(hits: int) -> list:
        lists = [passages(*(f"d{i}" for i in range(hits)), *(f"x{i}" for i in range(10 - hits)))]
        return [({f"d{i}": 1 for i in range(10)}, each) for each in lists * 2]

    assert "doc finds most, 2 in the first 2 labelled retrievals, and the lists could hold 20" in refused(*asked(1))
    assert choose_identity(asked(2)).found == 4
    # Too few to tell: nineteen promised.
    ((labels, retrieved),) = asked(1)[:1]
    assert choose_identity([(labels, retrieved), (labels, retrieved[:9])]).found == 2


@settings(deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abcdef"), min_size=1), st.lists(st.sampled_from("abcdefgh")))))
def test_found_is_the_number_of_distinct_labels_that_the_taken_id_meets(rows) -> None:
    observed = [(labels, passages(*names)) for labels, names in rows]
    expected = sum(len(labels & set(names)) for labels, names in rows[:50])
    if expected == 0:
        assert "no label was found" in refused(*observed)
    elif expected >= 0.2 * sum(min(len(labels), len(names), 10) for labels, names in rows):
        assert (choose_identity(observed).name, choose_identity(observed).found) == ("doc", expected)
