"""What happens at the edges: each case a named choice with a documented default."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from rag_selectivity.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the join of qrels and run treats the edge cases.

    Attributes
    ----------
    order : {"score", "rank"}
        `score` sorts every list that has scores by descending score; `rank` trusts the order given.
    ties : {"docid_descending", "as_given"}
        Equal scores: by descending passage id, as trec_eval does, or in the order given.
    scores : {"float64", "float32"}
        The precision in which scores are compared (trec_eval holds them as float32).
    missing_query : {"fail", "skip", "error"}
        A query in the qrels but not in the run: counts as a failure, is left out, or is refused.
    no_relevant : {"skip", "error"}
        A query with fewer relevant passages than a success needs (R < m): left out on both sides of
        a chance-corrected ratio, or refused.
    duplicates : {"count_once", "drop", "error"}
        The second copy of a passage in a list: keeps its slot and earns nothing, is taken out of the
        list (what follows moves up), or is refused.
    unjudged : {"ignore", "worst", "condense", "error"}
        A retrieved passage without a label: neither relevant nor harmful, given the scale's lowest
        grade, taken out of the list (what follows moves up), or refused.
    short_lists : {"requested", "returned"}
        A list shorter than K: the random draw, the divisors and the best set still get K (the budget is
        the same), or what was really returned.
    """

    order: Literal["score", "rank"] = "score"
    ties: Literal["docid_descending", "as_given"] = "docid_descending"
    scores: Literal["float64", "float32"] = "float64"
    missing_query: Literal["fail", "skip", "error"] = "fail"
    no_relevant: Literal["skip", "error"] = "skip"
    duplicates: Literal["count_once", "drop", "error"] = "count_once"
    unjudged: Literal["ignore", "worst", "condense", "error"] = "ignore"
    short_lists: Literal["requested", "returned"] = "requested"

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            if getattr(self, name) not in choices:
                raise InputError(f"policy `{name}` must be one of {', '.join(choices)}, got {getattr(self, name)!r}")


def _choices() -> dict[str, tuple[str, ...]]:
    return {name: get_args(hint) for name, hint in get_type_hints(Policy).items()}


POLICIES = {"default": Policy(), "trec_eval": Policy(scores="float32")}


def resolve_policy(policy: str | Policy | None = None, **overrides: Any) -> Policy:
    """A policy by name (`default`, `trec_eval`) or as given, with single choices overridden.

    >>> resolve_policy("trec_eval", short_lists="returned").scores
    'float32'
    """
    if policy is None:
        policy = POLICIES["default"]
    elif isinstance(policy, str):
        if policy not in POLICIES:
            raise InputError(
                f"unknown policy {policy!r}{did_you_mean(policy, POLICIES)} (known: {', '.join(POLICIES)})"
            )
        policy = POLICIES[policy]
    known = [field.name for field in fields(Policy)]
    for name in overrides:
        if name not in known:
            raise InputError(f"unknown option {name!r}{did_you_mean(name, known)} (policies: {', '.join(known)})")
    return replace(policy, **overrides) if overrides else policy
