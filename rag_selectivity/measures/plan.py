"""What is measured where nothing else was asked for, and which depths each measure is taken at."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.token_budget import TokenBudget, budgets_among, is_budget
from rag_selectivity.measures.base import REGISTRY, WHOLE_LIST, Measure, Real, parse_measure
from rag_selectivity.tables.cells import iterated, shown
from rag_selectivity.tables.grades import Scale, scale_named
from rag_selectivity.tables.ids import IntArray

DEFAULT_DEPTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

#: Measures, each without its depth, with all the depths it is taken at.
Plan = list[tuple[Measure, NDArray[Any]]]
#: Of a comparison, whose tests share one level: few depths.
COMPARED_DEPTHS = (5, 10, 20)
V = TypeVar("V")
#: The depth of figures where no K was decided on: this one, or the one that is nearest to it.
USUAL_DEPTH = 10
#: A corpus holds fewer passages.
LARGEST_DEPTH = 1 << 53
#: Stands for the default measures among others.
DEFAULT_MEASURES = "default"
#: What the default measures hold only with a corpus size.
_SIZED = ("BoR", "BoR_max", "lambda")
NO_SIZE = (
    "a random draw needs the number of chunks in your index: corpus_size=… (--corpus-size N) (how-to: corpus-size)"
)


def default_measures(
    scale: str | Scale, *, sized: bool, pooled: bool = False, classic: bool = False
) -> tuple[str, ...]:
    """The measures that labels of a scale carry, with a corpus size (`sized`) or without.

    `pooled` adds PROC and %PROC, for views that show who lost the evidence; `classic` adds P and R for binary labels,
    which their users know. Judged comes along by itself with whatever rests on it.

    >>> default_measures("utility", sized=True)
    ('Success', 'BoR', 'BoR_max', 'lambda', 'RA-nWG', 'Harm')
    """
    chance = ("Success", *_SIZED) if sized else ("Success",)
    if scale_named(scale).name != "utility":
        return (*chance, "P", "R") if classic else chance
    return (*chance, "RA-nWG", *(("PROC", "%PROC") if pooled else ()), "Harm")


def absent_measures(measures: Iterable[Measure], *, sized: bool) -> dict[str, str]:
    """The chance-corrected measures that belong beside Success and are not there, with the reason.

    >>> list(absent_measures([parse_measure("Success@5")], sized=False)), absent_measures([], sized=True)
    (['BoR', 'BoR_max', 'lambda'], {})
    """
    if sized or not any(measure.name == "Success" for measure in measures):
        return {}
    return dict.fromkeys(_SIZED, NO_SIZE)


def default_query_measures(scale: str | Scale, *, sized: bool) -> tuple[str, ...]:
    """The default measures that have a figure for one query; Success and RandomSuccess make BoR.

    >>> default_query_measures("utility", sized=True)
    ('Success', 'RandomSuccess', 'RA-nWG', 'Harm')
    """
    chance = ("Success", "RandomSuccess") if sized else ("Success",)
    return (*chance, "RA-nWG", "Harm") if scale_named(scale).name == "utility" else chance


def page_measures(scale: str | Scale, *, sized: bool) -> tuple[str, ...]:
    """The default measures and the classic ones that the HTML page shows beside them.

    >>> page_measures("utility", sized=False)
    ('Success', 'RA-nWG', 'PROC', '%PROC', 'Harm', 'nDCG', 'IPrec')
    >>> page_measures("trec", sized=False)
    ('Success', 'P', 'R', 'nDCG', 'IPrec')
    """
    classic = ("nDCG", "IPrec") if scale_named(scale).name == "utility" else ("P", "R", "nDCG", "IPrec")
    return (*default_measures(scale, sized=sized, pooled=True), *classic)


def compared_measures(scale: str | Scale, *, sized: bool) -> tuple[str, ...]:
    """What two runs are compared by: the default measures that are a property of the run.

    >>> compared_measures("utility", sized=True)
    ('Success', 'BoR', 'RA-nWG', 'Harm')
    """
    names = default_measures(scale, sized=sized)
    return tuple(name for name in names if parse_measure(name).higher_is_better is not None)


def wanted_measures(
    measures: Sequence[str | Measure] | str | Measure | None,
    scale: str | Scale,
    *,
    sized: bool,
    pooled: bool = False,
    at_budgets: bool = False,
) -> list[Measure]:
    """The measures that were asked for, or the default ones, each once, and what is always shown beside them.

    The name `default` among the measures stands for the default ones. `at_budgets` admits budgets of tokens.
    """
    usual = default_measures(scale, sized=sized, pooled=pooled)
    wanted = chain.from_iterable(usual if each == DEFAULT_MEASURES else [each] for each in _asked_for(measures))
    parsed = [parse_measure(each) for each in wanted]
    if not parsed:
        raise InputError("no measure was asked for")
    for measure in parsed:
        if measure.at is not None and is_budget(measure.at) and not at_budgets:
            raise InputError(
                f"{measure}: evaluate, compare and report measure at budgets of tokens; here give a depth K"
            )
    beside = [REGISTRY["Judged"](at=measure.at) for measure in parsed if measure.read_with_judged]
    return list(dict.fromkeys([*parsed, *beside]))


def scale_for(scale: Any, measures: Any) -> Any:
    """The scale of expected ids without grades: what was given, or else `utility` if a measure needs it."""
    named = named_measures(measures) if isinstance(measures, (str, Measure, Sequence)) else ()
    # Harm and the like need grades of junk, which expected ids cannot tell.
    needs = any(each.required_scale == "utility" and each.compares_with_all_labels for each in named)
    return "utility" if scale is None and needs else scale


def scaled_for(qrels: Qrels, scale: Any, measures: Any) -> Qrels:
    """The labels on the scale that was given or that a measure needs; labels that are all 1 are expected ids then."""
    scale = qrels.scale if scale is None else scale
    if scale is None and (qrels.grade == 1).all() and scale_for(None, measures):
        qrels, scale = replace(qrels, expected=np.ones(qrels.size, bool)), "utility"
    return qrels.on_scale(scale)


def plan_as_named(measures: Iterable[Measure]) -> Plan:
    """A column for each measure, at the depth that it names."""
    return [(each.without_depth, np.array([WHOLE_LIST if each.at is None else each.at])) for each in measures]


def default_depths(longest: int, largest_corpus: int | None = None) -> IntArray:
    """1, 2, 5, 10, … 1000, as far as the longest list and the largest corpus reach; at least 1.

    >>> default_depths(30).tolist(), default_depths(30, 8).tolist(), default_depths(0).tolist()
    ([1, 2, 5, 10, 20], [1, 2, 5], [1])
    """
    reach = max(1, longest if largest_corpus is None else min(longest, largest_corpus))
    return np.array([depth for depth in DEFAULT_DEPTHS if depth <= reach], np.int64)


def compared_depths(longest: int) -> list[int]:
    """5, 10 and 20, as far as the longest list reaches; else its length.

    >>> compared_depths(12), compared_depths(3)
    ([5, 10], [3])
    """
    return [depth for depth in COMPARED_DEPTHS if depth <= longest] or [longest]


def given_depths(depths: Iterable[int], measures: Sequence[Measure]) -> IntArray:
    """Depths that a user gave, in order; they serve the measures that name none."""
    chosen = list(iterated(depths, "depths must be a list of whole numbers ≥ 1"))
    for depth in chosen:
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
            raise InputError(f"depth {depth!r} is not a whole number ≥ 1")
        if depth > LARGEST_DEPTH:
            raise InputError(f"depth {shown(depth)} is larger than any list: give one up to {LARGEST_DEPTH:,}")
    if not chosen and any(measure.at is None for measure in measures):
        raise InputError("the list of depths is empty")
    return np.array(sorted(set(chosen)), np.int64)


def plan_of(measures: Iterable[Measure], grid: IntArray, *, whole_lists: bool = False) -> Plan:
    """Each measure without its depth, once, with all its depths; and measures of how much unjudged passages could add.

    `whole_lists` adds the depth of the whole list to every measure that is taken at depths.
    """
    chosen = list(measures)
    depths: dict[Measure, set[Any]] = {}
    for measure in [*chosen, *(upper for measure in chosen if (upper := measure.upper_end) is not None)]:
        at = depths.setdefault(measure.without_depth, set())
        at.update(measure.default_depths(grid).tolist() if measure.at is None else [measure.at + 0])
        if whole_lists and not isinstance(measure.cutoff, Real):
            at.add(WHOLE_LIST)
    return [(measure, np.array(sorted(at))) for measure, at in depths.items()]


def with_whole_lists(plan: Plan, measures: Iterable[Measure]) -> Plan:
    """The plan with the whole list too for measures that are usually taken of it, where nobody gave depths."""
    uncut = {measure for measure in measures if measure.usually_whole}
    return [(measure, np.append(at, WHOLE_LIST) if measure in uncut else at) for measure, at in plan]


def without_depth(measures: Iterable[Measure]) -> list[Measure]:
    """The measures without their depths, each once."""
    return list(dict.fromkeys(measure.without_depth for measure in measures))


def at_depth(figures: Mapping[str, V], measure: Measure, depth: int) -> V | None:
    """What a report holds of a measure at a depth; None where the measure was not or cannot be taken there."""
    try:
        return figures.get(str(measure @ depth))
    except InputError:
        return None


def nearest_depth(depths: Iterable[int], to: int = USUAL_DEPTH) -> int | None:
    """The depth that is nearest to one, the lower of two; None without depths.

    >>> nearest_depth([1, 20]), nearest_depth([5, 15, 20]), nearest_depth([])
    (1, 5, None)
    """
    return min(depths, key=lambda depth: (abs(depth - to), depth), default=None)


def budgets_of(measures: Sequence[str | Measure] | str | Measure | None) -> list[TokenBudget]:
    """The budgets of tokens among measures that were asked for, each once.

    >>> budgets_of(["Success@5", "Success@2000tok", "Harm@500tok"])
    [500tok, 2000tok]
    """
    return budgets_among(each.at for each in named_measures(measures) if each.at is not None)


def need_other_lists(measures: Sequence[str | Measure] | str | Measure | None) -> bool:
    """Whether one of the measures asks for the lists of the other queries.

    >>> need_other_lists(["BoR(null=lists)@10"]), need_other_lists("BoR@10"), need_other_lists(None)
    (True, False, False)
    """
    return any(getattr(each, "null", "random") == "lists" for each in named_measures(measures))


def _asked_for(measures: Sequence[str | Measure] | str | Measure | None) -> Iterable[str | Measure]:
    """The measures and names that were asked for; by default the name of the default ones."""
    if measures is None or isinstance(measures, (str, Measure)):
        return [DEFAULT_MEASURES if measures is None else measures]
    return iterated(measures, "measures must be a measure or a list of them")


def named_measures(measures: Sequence[str | Measure] | str | Measure | None) -> list[Measure]:
    """The measures that were asked for by name."""
    return [parse_measure(each) for each in _asked_for(measures) if each != DEFAULT_MEASURES]


def cutoffs_in(plan: Plan) -> list[Any]:
    """Every K of a plan, whole lists and budgets of tokens among them: no recall levels (IPrec@.5)."""
    return [k for measure, at in plan if not isinstance(measure.cutoff, Real) for k in at.tolist()]


def ranks_in(plan: Plan) -> IntArray:
    """Every K of a plan, in order: neither recall levels (IPrec@.5) nor whole lists, nor budgets of tokens."""
    return given_depths((k for k in cutoffs_in(plan) if k != WHOLE_LIST and not is_budget(k)), ())
