"""Interleaved drafts: what they hold, which coins they toss, and that equal systems are treated alike."""

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_selectivity import InputError
from rag_selectivity.online import citations, credit, interleave

pytestmark = pytest.mark.contract

LISTS = st.lists(st.sampled_from([f"d{i}" for i in range(12)]), max_size=15)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LISTS, LISTS, st.integers(1, 12), st.text(min_size=1), st.sampled_from(["team-draft", "probabilistic"]))
def test_a_draft_holds_the_best_of_both_once(first, second, k, seed, method) -> None:
    draft = interleave({"a": first, "b": second}, k=k, seed=seed, method=method)
    assert len(draft.passages) == len(set(draft.passages)) <= k
    assert list(draft.team) == draft.passages
    for passage, system in draft.team.items():
        assert passage in {"a": first, "b": second}[system]
    reachable = {*first, *second} if method != "probabilistic" else {*first[: 2 * k], *second[: 2 * k]}
    assert len(draft.passages) == min(k, len(reachable)) or method == "probabilistic"
    assert draft == interleave({"a": first, "b": second}, k=k, seed=seed, method=method)


def brute_force_team_draft(first: list[str], second: list[str], k: int, coins: list[int]) -> dict[str, str]:
    """Radlinski, Kurup and Joachims' algorithm as printed: the smaller team picks, a coin breaks ties."""
    team: dict[str, str] = {}
    tosses = iter(coins)
    while len(team) < k:
        left = [[d for d in ranked if d not in team] for ranked in (first, second)]
        if not any(left):
            break
        sizes = [sum(system == name for system in team.values()) for name in "ab"]
        side = next(tosses) if sizes[0] == sizes[1] else int(sizes[1] < sizes[0])
        if not left[side]:
            side = 1 - side
        team[left[side][0]] = "ab"[side]
    return team


def test_a_team_draft_is_the_published_algorithm() -> None:
    random = Random(3)
    for seed in range(300):
        passages = [f"d{i}" for i in range(8)]
        first, second = random.sample(passages, 8), random.sample(passages, 8)
        draft = interleave({"a": first, "b": second}, k=6, seed=seed)
        leaders = ["ab".index(system) for system in list(draft.team.values())[::2]]
        assert draft.team == brute_force_team_draft(first, second, 6, leaders)


def test_coins_are_fair_and_differ_by_impression() -> None:
    lists = {"a": ["d1", "d2", "d3"], "b": ["d2", "d1", "d3"]}
    firsts = Counter(interleave(lists, k=3, seed=i).passages[0] for i in range(4000))
    assert abs(firsts["d1"] - 2000) < 4 * 1000**0.5
    assert interleave(lists, k=3, seed=7) == interleave(lists, k=3, seed="7")


def test_equal_systems_get_equal_shares_of_a_shared_passage() -> None:
    ranked = [f"d{i}" for i in range(10)]
    for method in ("team-draft", "probabilistic"):
        drafts = (interleave({"a": ranked, "b": ranked}, k=5, seed=i, method=method) for i in range(3000))
        teams = Counter(draft.team.get("d0") for draft in drafts)
        assert abs(teams["a"] - teams["b"]) < 4 * 3000**0.5


def test_a_shifted_list_gets_no_more_slots() -> None:
    """Chapelle et al. 2012, section 3: users who click at random prefer neither system."""
    a, b = ["d1", "d2", "d3", "d4"], ["d2", "d3", "d4", "d1"]
    drafts = (interleave({"a": a, "b": b}, k=4, seed=i) for i in range(3000))
    slots = Counter(system for draft in drafts for system in draft.team.values())
    assert 0.47 <= slots["b"] / (slots["a"] + slots["b"]) <= 0.53


def test_probabilistic_drafts_weigh_ranks_by_their_cube() -> None:
    lists = {"a": ["d1", "d2"], "b": ["e1", "e2"]}
    drafts = [interleave(lists, k=1, seed=i, method="probabilistic").passages[0] for i in range(20_000)]
    share = sum(passage.endswith("2") for passage in drafts) / len(drafts)
    assert abs(share - (1 / 8) / (1 + 1 / 8)) < 4 * (0.1 / 20_000) ** 0.5


def test_if_one_list_ends_the_other_fills_the_rest() -> None:
    draft = interleave({"a": ["d1"], "b": ["e1", "e2", "e3", "e4"]}, k=4, seed="i")
    assert sorted(draft.passages) == ["d1", "e1", "e2", "e3"]
    assert interleave({"a": [], "b": []}, k=4, seed="i").passages == []


def test_citations_and_credit() -> None:
    assert citations("[d1] and [d2; d3], not [d9] or d4.", ["d1", "d2", "d3", "d4"]) == ["d1", "d2", "d3"]
    assert citations("ids may hold commas [a, b]", ["a, b", "c"]) == ["a, b"]
    assert citations("[1][Source 2][0][99]", ["x", "y"], numbered=True) == ["x", "y"]
    assert credit(["d1"], marks={"d2": -1}) == {"d1": 1.0, "d2": -1.0}
    for wrong in ({"thumb": 2}, {"marks": {"d": float("nan")}}):
        with pytest.raises(InputError):
            credit(["d1"], **wrong)
    with pytest.raises(InputError, match="must be a list of ids"):
        credit("d1")
