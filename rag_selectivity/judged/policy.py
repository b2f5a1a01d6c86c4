"""What happens at the edges: each case a named choice with a documented default."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.tables.cells import check_one_of

#: The sort key of a passage among those with equal scores, from its query's id and its own; the smallest comes first.
TieKey = Callable[[str, str], Any]
K = TypeVar("K", bound=TieKey)
#: Ways to order equal scores by their names, besides `docid_descending` and `as_given`.
TIES: dict[str, TieKey] = {}
_TIES_OF_RUNS = ("docid_descending", "as_given")


def register_ties(name: str) -> Callable[[K], K]:
    """Add a way to order equal scores; a decorator for a function of (query, passage) that gives the sort key.

    Raises
    ------
    InputError
        If another way has the name.
    """

    def add(key: K) -> K:
        if name in _TIES_OF_RUNS or TIES.setdefault(name, key) is not key:
            raise InputError(f"there is a way to order ties {name!r} already: choose another name")
        return key

    return add


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the join of qrels and run treats the edge cases.

    Attributes
    ----------
    order : {"score", "rank"}
        `score` sorts every list that has scores by descending score; `rank` trusts the order given.
    ties : {"docid_descending", "as_given"} or a registered name
        Equal scores: by descending passage id, as trec_eval does, in the order given, or as `register_ties` says.
    scores : {"float64", "float32"}
        The precision in which scores are compared (trec_eval holds them as float32).
    missing_query : {"fail", "skip", "error"}
        A query in the qrels but not in the run: counts as a failure, is left out, or is refused.
    no_relevant : {"skip", "error"}
        A query with fewer relevant passages than a success needs (R < m): left out on both sides of
        a chance-corrected ratio, or refused.
    duplicates : {"count_once", "drop", "error"}, optional
        The second copy of a passage in a list: keeps its slot and earns nothing, is taken out of the
        list (what follows moves up), or is refused. Without a rule it keeps its slot, and comparisons with a random
        draw are undefined where more than a tenth of the lists repeat a passage within their top K, unless
        `passages_of` is given.
    unjudged : {"ignore", "worst", "condense", "error"}
        A retrieved passage without a label: neither relevant nor harmful, given the scale's lowest
        grade, taken out of the list (what follows moves up), or refused.
    short_lists : {"requested", "returned"}
        A list shorter than K: the random draw, the divisors and the best set still get K (the budget is
        the same), or what was really returned; an empty list is a failure of K slots in both cases.
    exclude_self : bool
        Whether the passage that has the id of its query is left out: of the list and the pool (what follows moves up),
        of the labels, and of the corpus where its ids are given. For queries that are passages themselves, as in
        ArguAna; a `corpus_size` is then to be given without it.
    """

    order: Literal["score", "rank"] = "score"
    ties: str = "docid_descending"
    scores: Literal["float64", "float32"] = "float64"
    missing_query: Literal["fail", "skip", "error"] = "fail"
    no_relevant: Literal["skip", "error"] = "skip"
    duplicates: Literal["count_once", "drop", "error"] | None = None
    unjudged: Literal["ignore", "worst", "condense", "error"] = "ignore"
    short_lists: Literal["requested", "returned"] = "requested"
    exclude_self: bool = False

    @property
    def scale(self) -> str | None:
        """The scale of the grades if nobody names one: trec_eval knows only its own."""
        return "trec" if self.scores == "float32" else None

    @property
    def long_tags(self) -> bool:
        """Whether all that follows the fifth field of a TREC run belongs to the tag, as trec_eval reads it."""
        return self.scores == "float32"

    def refuse_leaving_out(self, needs: str, otherwise: str) -> None:
        """An InputError if passages are left out of the lists, for what `needs` them as they are shown."""
        for name, choice in (("unjudged", "condense"), ("duplicates", "drop")):
            if getattr(self, name) == choice:
                fact = f'the policy {name}="{choice}" leaves passages out: give another policy{otherwise}'
                raise InputError(f"{needs} the lists as they are shown, and {fact}")

    def __post_init__(self) -> None:
        for name, choices in {**_choices(), "ties": (*_TIES_OF_RUNS, *TIES)}.items():
            if getattr(self, name) is not None or None not in choices:
                check_one_of(name, getattr(self, name), [*filter(None, choices)])
        if not isinstance(self.exclude_self, bool):
            raise InputError(f"exclude_self must be True or False, got {self.exclude_self!r}")


def _choices() -> dict[str, tuple[str | None, ...]]:
    """The choices of each rule; None where it need not be given."""
    hints = {name: get_args(hint) for name, hint in get_type_hints(Policy).items() if hint not in (str, bool)}
    return {name: (*get_args(of[0]), None) if type(None) in of else of for name, of in hints.items()}


#: What the functions that take the rules take beside them.
_ARGUMENTS = ("depths", "measures", "corpus_size", "scale", "pool", "by", "weights", "bootstrap", "human", "tokens")
#: Policies by their names, as `policy="trec_eval"` and `rules.policy` have them.
POLICIES = {"default": Policy(), "trec_eval": Policy(scores="float32")}


def resolve_policy(policy: str | Policy | None = None, **overrides: Any) -> Policy:
    """A policy by name (`default` or `trec_eval`) or as given, with single choices overridden.

    >>> resolve_policy("trec_eval", short_lists="returned").scores
    'float32'
    """
    if not isinstance(policy, Policy):
        name = "default" if policy is None or (isinstance(policy, str) and not policy) else policy
        check_one_of("policy", name, POLICIES)
        policy = POLICIES[name]
    known = [field.name for field in fields(Policy)]
    for name in [each for each in overrides if each not in known]:
        use = ": use compare(…, baseline=…)" if name == "baseline" else did_you_mean(name, [*_ARGUMENTS, *known])
        raise InputError(f"there is no option {name!r}{use} (those of a policy are {', '.join(known)})")
    return replace(policy, **overrides) if overrides else policy
