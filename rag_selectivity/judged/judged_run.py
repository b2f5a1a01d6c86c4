"""JudgedRun: a run joined with its judgments. It holds only judged passages and list lengths; measures need no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rag_selectivity.errors import InputError
from rag_selectivity.judged.lists import Lists
from rag_selectivity.judged.other_lists import OtherLists
from rag_selectivity.judged.policy import Policy, resolve_policy
from rag_selectivity.judged.qrels import Qrels
from rag_selectivity.judged.query_weights import QueryWeights
from rag_selectivity.judged.rows import NO_HITS, Controls, Coverage, Documents, Hits
from rag_selectivity.judged.terms import Terms
from rag_selectivity.judged.token_budget import TokenBudget
from rag_selectivity.tables.cells import whole_count
from rag_selectivity.tables.grades import SCALES, Scale
from rag_selectivity.tables.ids import IntArray, ranges
from rag_selectivity.wording import NAMED

#: The depth of a measure that takes the whole list.
WHOLE_LIST = 1 << 62

BoolArray = NDArray[np.bool_]
N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True)
class JudgedRun:
    """A run with the grades of its passages: all that a measure sees.

    Attributes
    ----------
    queries : tuple of str
        The queries of the qrels, including those that the run lacks.
    hits : Hits
    returned : int64[queries]
        Length of each list; 0 if the run lacks the query.
    missing : bool[queries]
        The queries that the run lacks; an empty list is a list.
    own_pool : bool[queries]
        All queries if no pool was given, so that the run's own full lists are the pool; of lists that a budget cuts,
        those that fit whole. None if a pool was given; a query that it lacks has its own list as its pool.
    first_repeat : int64[queries]
        The rank of the first passage of each list that stands above it too; 0 without one.
    grades : int64[levels]
    labels : int64[queries, levels]
        The number of judged passages of each query with each grade.
    corpus_size : int64[queries] or None
        Passages that could have been retrieved, N.
    scale, policy, coverage
    pool, pool_returned : Hits, int64[queries], or None
        The candidates before selection and their list lengths; None: the run's own full list is the pool.
    controls : Controls or None
        Passages drawn at random from the corpus, with their grades; they are not among the labels.
    documents : Documents or None
        The numbers of passages of the judged documents. None if passages are judged and retrieved as they are.
    outside : Hits
        The judged passages that a retriever's filter leaves out, at no rank.
    made_of : (Terms, Lists, Lists or None) or None
        The labels, the lists and the pool, from which `concat` makes the whole of parts; None if the object was not
        made by `join`.
    qrels : Qrels or None
        The judgments, whose rows `Hits.judgment` numbers; None if only counts are known.
    fitting : {TokenBudget: int64[queries]}
        How many passages of each list fit in each budget of tokens that was asked for.
    grouped : JudgedRun or None
        The same lists and labels with groups of passages in place of passages, if these were given.
    copies : Hits or None
        Of lists of groups: the slots whose group stands above them too, judged or not; their grades mean nothing.
    weights : QueryWeights or None
        How much each query counts in figures over all of them; None where all count alike.
    other_lists : OtherLists or None
        The judged passages of each query in the lists of all other queries, if a measure asked for them; None of a part
        of the queries.
    empty_slots : int
        How many slots an empty list has with `short_lists="returned"`, where whole lists are measured.
    """

    queries: tuple[str, ...]
    hits: Hits
    returned: IntArray
    missing: BoolArray
    own_pool: BoolArray
    first_repeat: IntArray
    grades: IntArray
    labels: IntArray
    corpus_size: IntArray | None
    scale: Scale
    policy: Policy
    coverage: Coverage = field(default_factory=Coverage)
    pool: Hits | None = None
    pool_returned: IntArray | None = None
    controls: Controls | None = None
    documents: Documents | None = None
    outside: Hits = NO_HITS
    made_of: tuple[Terms, Lists, Lists | None] | None = field(default=None, repr=False, compare=False)
    qrels: Qrels | None = field(default=None, repr=False, compare=False)
    fitting: Mapping[TokenBudget, IntArray] = field(default_factory=dict)
    grouped: JudgedRun | None = None
    copies: Hits | None = None
    weights: QueryWeights | None = None
    other_lists: OtherLists | None = None
    empty_slots: int = 1

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def of(cls, terms: Terms, run: Any, pool: Any, name: str) -> JudgedRun:
        """Join a run, or parts of it, and its pool with the labels, the corpus and the rules of `terms`."""
        lists = Lists.of(run, terms, name)
        return cls._of_lists(terms, lists, None if pool is None else Lists.of(pool, terms, f"the pool of {name}"))

    @classmethod
    def _of_lists(cls, terms: Terms, lists: Lists, pool: Lists | None) -> JudgedRun:
        labels, missing = terms.labels, lists.times == 0
        own = np.ones(len(missing), bool) if pool is None else pool.times == 0
        grades = np.array(sorted({*labels.grade.tolist(), *labels.levels}), np.int64)
        cells = labels.query * len(grades) + np.searchsorted(grades, labels.grade)
        counts = np.bincount(cells, minlength=len(labels) * len(grades)).reshape(len(labels), len(grades))
        expected = 0 if labels.expected is None else int(labels.expected.sum())
        judged = cls(
            queries=labels.queries,
            hits=Hits.together(lists.hits),
            returned=lists.length,
            missing=missing,
            own_pool=np.full(len(missing), pool is None),
            first_repeat=lists.first_repeat,
            grades=grades,
            labels=counts,
            corpus_size=terms.sizes,
            scale=terms.scale,
            policy=terms.policy,
            controls=_controls(terms, Hits.together(lists.controls)),
            documents=terms.documents,
            outside=terms.outside,
            made_of=(terms, lists, pool),
            qrels=terms.qrels,
        )
        outside = lacking = 0
        if pool is not None:
            judged = replace(
                judged,
                pool=Hits.together([*pool.hits, judged.hits.take(own[judged.hits.query])]),
                pool_returned=np.where(own, judged.returned, pool.length),
            )
            outside, lacking = len(judged.hits_outside_pool().query), int((own & ~missing).sum())
        coverage = Coverage(
            missing_from_run=int(missing.sum()),
            not_in_qrels=len(lists.unknown),
            duplicates=lists.counts["duplicates"],
            repeated_judgments=terms.qrels.repeated,
            negative_judgments=terms.qrels.negative,
            outside_pool=outside,
            missing_from_pool=lacking,
            expected=expected,
            graded=labels.size - expected,
            first_missing=tuple(islice(compress(labels.queries, missing.tolist()), NAMED)),
            first_unknown=tuple(islice(dict.fromkeys(lists.unknown), NAMED)),
        )
        judged = replace(judged, coverage=coverage)
        return judged.over(~missing) if terms.policy.missing_query == "skip" and missing.any() else judged

    @classmethod
    def from_counts(
        cls, N: ArrayLike, K: ArrayLike, R: ArrayLike, hit: ArrayLike, *, queries: Sequence[str] | None = None
    ) -> JudgedRun:
        """From counts, one of each for a query, as in a production log without ids.

        `hit` is a bool, or the number of relevant passages among the K. The random draw of each query
        has its own K, so measure at `depths=[max(K)]`. For chance-corrected measures only.
        """
        columns = {"N": N, "K": K, "R": R, "hit": hit}
        size, shown, relevant, hits = (_count_column(values, name) for name, values in columns.items())
        if not len(size) == len(shown) == len(relevant) == len(hits):
            raise InputError("counts: N, K, R and hit differ in length; give one of each for every query")
        names = tuple(queries) if queries is not None else tuple(str(i + 1) for i in range(len(size)))
        of_hit = (hits, "hit", np.minimum(shown, relevant), "min(K, R)")
        for column, name, most, bound in ((shown, "K", size, "N"), (relevant, "R", size, "N"), of_hit):
            for i in np.flatnonzero(column > most)[:1].tolist():
                raise InputError(f"counts of query {names[i]!r}: {name} = {column[i]} is more than {bound} = {most[i]}")
        row = np.repeat(np.arange(len(hits)), hits)
        # The ranks of the hits are unknown and do not matter here: put them first.
        rank = ranges(np.ones_like(hits), hits)
        return cls(
            queries=names,
            hits=Hits(row, rank, np.ones(len(row), np.int64), np.zeros(len(row), bool), np.arange(len(row))),
            returned=shown,
            missing=np.zeros(len(names), bool),
            own_pool=np.ones(len(names), bool),
            first_repeat=np.zeros(len(names), np.int64),
            grades=np.array([1]),
            labels=relevant[:, None],
            corpus_size=size,
            scale=SCALES["trec"],
            policy=resolve_policy(short_lists="returned"),
        )

    @classmethod
    def concat(cls, parts: Iterable[JudgedRun]) -> JudgedRun:
        """The join of a whole run from those of its parts, which are over different queries of the same labels.

        Parameters
        ----------
        parts : iterable of JudgedRun
            Made by `join` with the same labels and arguments.

        Raises
        ------
        InputError
            If there is no part, two parts have a list for one query, or their labels differ.

        Examples
        --------
        >>> import rag_selectivity as rs
        >>> labels = rs.Qrels.of({"q1": {"d1": 1}, "q2": {"d2": 1}})
        >>> one, other = rs.Run.of({"q1": ["d1"]}), rs.Run.of({"q2": ["d9"]})
        >>> whole = rs.JudgedRun.concat(rs.join(labels, part) for part in (one, other))
        >>> rs.evaluate_joined({"run": whole}, measures=["Success@1"])["Success@1"].value
        0.5
        """
        given = [each.made_of for each in parts]
        made = [part for part in given if part is not None]
        if not made or len(made) < len(given):
            raise InputError("concat: give one part or more, each of them made by `join`")
        terms = made[0][0]
        for other, _, _ in made:
            if other.qrels.queries != terms.qrels.queries or (other.qrels.lengths != terms.qrels.lengths).any():
                raise InputError("concat: the parts have different labels: join each with the labels of all queries")
        lists, pools = Lists.together(part[1] for part in made), [part[2] for part in made if part[2] is not None]
        if (again := lists.repeated()) is not None:
            raise InputError(f"concat: two parts have a list for query {terms.qrels.queries[again]!r}")
        return cls._of_lists(terms, lists, Lists.together(pools) if pools else None)

    def over(self, chosen: BoolArray) -> JudgedRun:
        """The join restricted to some of its queries: bool[queries]."""
        columns = {each.name: _over(getattr(self, each.name), chosen) for each in fields(self) if each.name != "grades"}
        return replace(self, **columns | {"queries": tuple(compress(self.queries, chosen))})

    # -- its queries -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.queries)

    def positions(self, queries: Iterable[str]) -> IntArray:
        """The positions of some queries, −1 for those that are not here."""
        place = {query: i for i, query in enumerate(self.queries)}
        return np.array([place.get(query, -1) for query in queries], np.int64)

    @property
    def is_first(self) -> BoolArray:
        """The queries that are no earlier one under another name: bool[queries]."""
        again = frozenset[str]() if self.qrels is None else self.qrels.again
        return np.array([query not in again for query in self.queries], bool)

    def refuse_weights(self, what: str, otherwise: str = "") -> None:
        """Refuse weighted queries where a figure would ignore the weights; `otherwise` says what else can be done.

        Raises
        ------
        InputError
        """
        if self.weights is not None:
            raise InputError(
                f"{what} cannot be weighted, and the queries have weights: leave weights (data.weights) out{otherwise}"
            )

    # -- what is counted more than once ----------------------------------------------------------

    @cached_property
    def _known(self) -> dict[str, tuple[tuple[Any, NDArray[Any]], ...]]:
        return {}

    def once(self, kind: str, key: Any, count: Callable[[], NDArray[N]]) -> NDArray[N]:
        """What `count` gives, for the last two keys of a kind without counting again: measures ask for the same."""
        known = self._known.get(kind, ())
        for of, found in known:
            if of == key:
                return found
        found = count()
        # Several callers get it, and none may change it.
        found.flags.writeable = False
        self._known[kind] = (*known[-1:], (key, found))
        return found

    def forget(self) -> None:
        """Let go of what `once` keeps: of a million queries it is as large as their figures."""
        self._known.clear()

    # -- groups of passages and budgets of tokens ------------------------------------------------

    def by_group(self, measure: str) -> JudgedRun:
        """The lists and labels of groups, or an error that says how to give them."""
        if self.grouped is None:
            give = "give groups={passage: group} (-c data.groups=FILE) (how-to: duplicate-passages)"
            raise InputError(f"{measure} is about groups of passages that say the same: {give}")
        return replace(self.grouped, fitting=self.fitting)

    def at_depth(self, depth: Any) -> tuple[JudgedRun, IntArray]:
        """The run to measure at a depth, and its ranks: int64[1], or of a budget of tokens int64[queries, 1].

        Where the first passage does not fit, nothing is shown: an empty list at K = 1, which fails.
        """
        if (budget := TokenBudget.of(depth)) is None:
            return self, np.array([depth])
        return self.within(budget), np.maximum(self.cutoffs(budget), 1)[:, None]

    def cutoffs(self, budget: TokenBudget) -> IntArray:
        """How many passages of each list fit in a budget of tokens: int64[queries].

        Raises
        ------
        InputError
            If this is not known.
        """
        if budget not in self.fitting:
            need = f"@{budget} needs the lengths of the passages in tokens, and they are not known here: evaluate or"
            raise InputError(f"{need} compare with tokens=… (--tokens FILE), or give a depth K in its place")
        return self.fitting[budget]

    def within(self, budget: TokenBudget) -> JudgedRun:
        """The lists as far as they fit in a budget of tokens; the candidates stay as they are."""
        cutoffs = self.cutoffs(budget)

        def cut(hits: Hits) -> Hits:
            return hits.take(hits.rank <= cutoffs[hits.query])

        return replace(
            self,
            grouped=None if self.grouped is None else self.by_group(f"@{budget}").within(budget),
            copies=None if self.copies is None else cut(self.copies),
            hits=cut(self.hits),
            returned=np.minimum(self.returned, cutoffs),
            pool=self.pooled,
            pool_returned=self.candidates_returned,
            own_pool=self.own_pool & (self.returned <= cutoffs),
        )

    # -- labels and corpus -----------------------------------------------------------------------

    @property
    def labelled(self) -> IntArray:
        """How many judged passages (or documents) each query has."""
        return self.once("labelled", None, lambda: self.labels.sum(axis=1))

    def threshold(self, rel: int | None = None) -> int:
        """The lowest relevant grade: `rel`, or by default that of the scale."""
        return self.scale.relevant_from if rel is None else rel

    def relevant(self, rel: int | None = None) -> IntArray:
        """How many passages (or documents) of each query have at least the grade `rel` (default: that of the scale)."""
        threshold = self.threshold(rel)
        return self.once("relevant", threshold, lambda: self.labels[:, self.grades >= threshold].sum(axis=1))

    @property
    def left(self) -> JudgedRun:
        """The join with the labels that a retriever's filter leaves: these alone can be drawn or shuffled."""
        if not len(self.outside.query):
            return self
        lost = np.zeros_like(self.labels)
        np.add.at(lost, (self.outside.query, np.searchsorted(self.grades, self.outside.grade)), 1)
        return replace(self, labels=self.labels - lost, outside=NO_HITS)

    def mean_relevant(self, rel: int | None = None) -> float | None:
        """N_p: the mean number of relevant passages of a query that has one, by the weights of the queries.

        None if no query has a relevant passage, or if labels name documents and runs their chunks: K then counts
        chunks, and the labels documents.
        """
        relevant = self.left.relevant(rel)
        has_one = relevant > 0
        if self.documents is not None or not has_one.any():
            return None
        weights = None if self.weights is None else self.weights.values[has_one]
        return float(np.average(relevant[has_one], weights=weights))

    def relevant_documents(self, documents: Documents, rel: int | None = None) -> Documents:
        """Those of the documents that are relevant; an InputError if the number of passages of one is unknown."""
        relevant = documents.take(documents.grade >= self.threshold(rel))
        unknown = np.flatnonzero(relevant.passages == 0)
        if len(unknown) and not documents.complete:
            first = f"the first of query {self.queries[relevant.query[unknown[0]]]!r}"
            such = f"{len(unknown)} documents with a grade of at least {self.threshold(rel)}, {first}"
            mend = "add them, or leave out the labels of documents that the index lacks"
            raise InputError(f"passages_of has no number of passages for {such}: {mend}")
        return relevant

    def relevant_in_corpus(self, rel: int | None = None) -> IntArray:
        """R of a random draw: the relevant passages of each query, or the passages of its relevant documents."""
        if self.documents is None:
            return self.left.relevant(rel)
        relevant = self.relevant_documents(self.documents, rel)
        return np.bincount(relevant.query, relevant.passages, minlength=len(self)).astype(np.int64)

    def require_corpus_size(self, measure: str) -> IntArray:
        """N for each query, or an error that says how to give it."""
        if self.corpus_size is None:
            give = "give corpus_size=… (--corpus-size N) (how-to: corpus-size)"
            raise InputError(f"{measure} compares with a random draw and needs the corpus size N: {give}")
        return self.corpus_size

    # -- the top K -------------------------------------------------------------------------------

    @cached_property
    def distinct(self) -> Hits:
        """The hits without the second and further copies of a passage."""
        repeated = self.hits.repeated
        return self.hits.take(~repeated) if repeated.any() else self.hits

    def hits_at(self, depths: IntArray, rel: int | None = None) -> IntArray:
        """Distinct relevant passages in the top K: int64[queries, depths]."""
        threshold, hits = self.threshold(rel), self.distinct
        count = lambda: count_at(hits.take(hits.grade >= threshold), len(self), depths)  # noqa: E731
        return self.once("hits", (threshold, key_of(depths)), count)

    def judged_at(self, depths: IntArray) -> IntArray:
        """Slots of the top K with a judged passage, including copies: int64[queries, depths]."""
        return self.distinct_at(depths) if self.distinct is self.hits else count_at(self.hits, len(self), depths)

    def distinct_at(self, depths: IntArray) -> IntArray:
        """Distinct judged passages in the top K: int64[queries, depths]."""
        return self.once("distinct", key_of(depths), lambda: count_at(self.distinct, len(self), depths))

    def returned_at(self, depths: IntArray) -> IntArray:
        """Slots of the top K with any passage: int64[queries, depths]."""
        return np.asarray(np.minimum(self.returned[:, None], depths))

    def repeats_at(self, depths: IntArray) -> BoolArray | None:
        """Whether each list repeats a passage within its top K: bool[queries, depths].

        None where it is known what that means: chunks of documents, or copies for which there is a rule.
        """
        if self.documents is not None or self.policy.duplicates is not None:
            return None
        first = self.first_repeat[:, None]
        return (first > 0) & (first <= self.returned_at(depths))

    def harmful_at(self, depths: IntArray, max_grade: int) -> IntArray:
        """Slots of the top K with a grade of at most `max_grade`; with `unjudged="worst"` also unjudged passages."""
        harmful = count_at(self.hits.take(self.hits.grade <= max_grade), len(self), depths)
        if self.policy.unjudged == "worst" and max_grade >= self.scale.lowest:
            harmful = harmful + self.returned_at(depths) - self.judged_at(depths)
        return harmful

    def slots_at(self, depths: IntArray) -> IntArray:
        """How many slots count at each depth: K, or with `short_lists="returned"` at most the length of the list.

        An empty list is a failure of K slots in both cases; as a whole list, of `empty_slots`.
        """
        if self.policy.short_lists != "returned":
            return np.broadcast_to(depths, (len(self), depths.shape[-1]))
        of_empty = np.where(depths == WHOLE_LIST, self.empty_slots, depths)
        return np.where(self.returned[:, None] == 0, of_empty, self.returned_at(depths))

    def drawn_at(self, depths: IntArray) -> IntArray:
        """The size of the random draw at each depth: the slots, but at most the corpus size."""
        slots = self.slots_at(depths)
        return slots if self.corpus_size is None else np.minimum(slots, self.corpus_size[:, None])

    def grades_by_rank(self, depth: int) -> NDArray[np.float64]:
        """The shares of the queries with each grade at each rank up to K: float64[depth, levels + 2].

        One column for each of `grades`, then unjudged passages, then empty slots; every row sums to 1.
        """
        within = self.hits.rank <= depth
        rank, level = self.hits.rank[within] - 1, np.searchsorted(self.grades, self.hits.grade[within])
        shares = np.zeros((depth, len(self.grades) + 2))
        counts = np.ones(len(self)) if self.weights is None else self.weights.values
        np.add.at(shares, (rank, level), counts[self.hits.query[within]])
        filled = ((self.returned[:, None] > np.arange(depth)) * counts[:, None]).sum(axis=0)
        shares[:, -2] = np.maximum(filled - shares.sum(axis=1), 0.0)
        shares[:, -1] = counts.sum() - filled
        return shares / (counts.sum() if len(self) else 1.0)

    def check_depths(self, depths: IntArray, *, one_by_one: bool = False) -> None:
        """Refuse depths that the corpus size or the policy does not allow. Needs all queries, not a part of them.

        If queries have different N, the random draw is min(K, N), unless the queries are measured one by one.
        """
        deepest = int(depths.max(initial=0))
        if self.corpus_size is not None and len(self):
            smallest, largest = int(self.corpus_size.min()), int(self.corpus_size.max())
            if deepest > smallest and (one_by_one or smallest == largest):
                fact = f"depth K = {deepest} is more than the corpus size N = {smallest}"
                raise InputError(f"{fact}: use smaller depths, or correct the corpus size")
        if self.policy.unjudged != "error":
            return
        judged, returned = (each(np.array([deepest]))[:, 0] for each in (self.judged_at, self.returned_at))
        if short := np.flatnonzero(judged < returned).tolist():
            i = min(short, key=self.queries.__getitem__)
            fact = f"query {self.queries[i]!r}: only {judged[i]} of the first {returned[i]} passages are judged"
            raise InputError(f'{fact}, and the policy is unjudged="error"')

    # -- the pool --------------------------------------------------------------------------------

    @property
    def candidates(self) -> Hits:
        """The hits of the pool, or of the run's own full list if no pool was given."""
        return self.hits if self.pool is None else self.pool

    @property
    def candidates_returned(self) -> IntArray:
        """The length of each query's pool."""
        return self.returned if self.pool_returned is None else self.pool_returned

    @cached_property
    def pooled(self) -> Hits:
        """The distinct hits of the pool, and those of the run that its pool lacks."""
        candidates = self.candidates
        return Hits.together([candidates.take(~candidates.repeated), self.hits_outside_pool()])

    def hits_outside_pool(self) -> Hits:
        """Distinct judged passages of the run that its pool lacks: they stand behind every rank of it."""
        hits = self.hits.take(~self.hits.repeated & ~np.isin(self.hits.judgment, self.candidates.judgment))
        return replace(hits, rank=np.full_like(hits.rank, WHOLE_LIST))


def _controls(terms: Terms, listed: Hits) -> Controls | None:
    """The random controls; `listed` are those in the run's lists."""
    qrels, drawn = terms.qrels, terms.drawn
    if qrels.origins is None or not drawn.any():
        return None
    rank = np.zeros(qrels.size, np.int64)
    # A list may repeat a passage: the first rank counts, so the last ranks are written first.
    rank[listed.judgment[::-1]] = listed.rank[::-1]
    by_judge = np.where(qrels.origins.judge_grade >= 0, qrels.origins.judge_grade, qrels.grade)
    return Controls(qrels.query[drawn], by_judge[drawn], rank[drawn])


def _over(value: Any, chosen: BoolArray) -> Any:
    """What some of the queries have in a field of a `JudgedRun`."""
    if isinstance(value, OtherLists):
        return value if chosen.all() else None
    if isinstance(value, Mapping):
        return {name: _over(each, chosen) for name, each in value.items()}
    if isinstance(value, (Hits, Controls, Documents, JudgedRun)):
        return value.over(chosen)
    if isinstance(value, QueryWeights):
        return replace(value, values=value.values[chosen])
    return value[chosen] if isinstance(value, np.ndarray) else value


def count_at(hits: Hits, queries: int, depths: IntArray, weights: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """The number (or the weight) of each query's hits within each depth, for all depths in one pass.

    `depths` is int64[depths], or int64[queries, 1] where each query has its own. Returns int64[queries, depths], or
    with weights float64[queries, depths].
    """
    if depths.shape[-1] == 1:
        within = hits.rank <= (depths[0] if depths.ndim == 1 else depths[hits.query, 0])
        counted = None if weights is None else weights[within]
        return np.bincount(hits.query[within], counted, minlength=queries)[:, None]
    order = np.argsort(depths, kind="stable")
    width = len(depths) + 1
    # The first depth that each hit is within, of its query.
    cells = hits.query * width + np.searchsorted(depths[order], hits.rank)
    counts = np.bincount(cells, weights, minlength=queries * width).reshape(queries, width)[:, :-1]
    result = np.empty_like(counts)
    result[:, order] = np.cumsum(counts, axis=1)
    return result


def key_of(depths: IntArray) -> tuple[Any, bytes]:
    """What stands for depths where figures of them are kept."""
    return depths.shape, depths.tobytes()


def _count_column(values: ArrayLike, name: str) -> IntArray:
    """Whole numbers ≥ 0, as int64; otherwise an InputError that names the first that is none."""
    array = np.atleast_1d(np.asarray(values))
    if array.dtype.kind in "iub" and array.min(initial=0) >= 0:
        return array.astype(np.int64)
    counts = [whole_count(each, f"counts: {name} of query number {i}") for i, each in enumerate(array.tolist(), 1)]
    return np.array(counts, np.int64)
