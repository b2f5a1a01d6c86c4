"""Collections with people's labels, judges and runs, on which tables of what labels are worth are made.

Judges are LLMs, people's grades with noise, or rules: they count a query's words in the passage, follow BM25's score,
prefer the first ranks, know two grades only, or are lenient on half of the queries.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import rag_selectivity as rs
from rag_selectivity.judged.origins import Chosen, LabelOrigins

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
JUDGES = ("Olz-gpt4o", "RMITIR-llama38b", "TREMA-direct", "willia-umbrela1")
GRADE_MAP = "0:1,1:3,2:4,3:5"
MS_MARCO, CRANFIELD_SIZE = 8_841_823, 1400
#: The chance of each grade of a noisy judge (columns), by people's grade (rows).
NOISE = {
    "lenient": [[0.72, 0.14, 0.08, 0.04, 0.02], [0.3, 0.3, 0.2, 0.15, 0.05], [0.1, 0.2, 0.4, 0.2, 0.1]],
    "mild": [[0.9, 0.06, 0.02, 0.015, 0.005], [0.3, 0.4, 0.2, 0.08, 0.02], [0.1, 0.2, 0.5, 0.15, 0.05]],
    "strict": [[0.96, 0.03, 0.01, 0.0, 0.0], [0.6, 0.3, 0.08, 0.02, 0.0], [0.4, 0.3, 0.2, 0.08, 0.02]],
}
_OF_RELEVANT = {
    "lenient": [[0.05, 0.05, 0.2, 0.5, 0.2], [0.02, 0.03, 0.1, 0.3, 0.55]],
    "mild": [[0.05, 0.05, 0.2, 0.5, 0.2], [0.02, 0.03, 0.1, 0.3, 0.55]],
    "strict": [[0.2, 0.2, 0.3, 0.25, 0.05], [0.1, 0.1, 0.2, 0.3, 0.3]],
}
FloatArray = NDArray[np.float64]
Grades = Mapping[str, Mapping[str, int]]
Lists = Mapping[str, list[str]]
#: A judge takes query, passage and the person's grade, and returns a grade.
Judge = Callable[[str, str, int], int]
K1, B = 0.9, 0.4
#: Words in more of the passages than this are no words of a query.
_TOO_COMMON = 0.1
_SCIFACT = {0: 1, 1: 5}


@dataclass(frozen=True)
class Collection:
    """Texts, and people's grades above the lowest; what is not in `grades` is not relevant.

    Scores are float64[queries, passages].
    """

    passages: tuple[str, ...]
    queries: tuple[str, ...]
    passage_texts: tuple[str, ...]
    query_texts: tuple[str, ...]
    grades: Mapping[str, Mapping[str, int]]

    @cached_property
    def _counts(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        words: dict[str, int] = {}
        both = []
        for texts in (self.passage_texts, self.query_texts):
            rows, columns = [], []
            for row, text in enumerate(texts):
                found = [words.setdefault(word, len(words)) for word in re.findall(r"[a-z0-9]+", text.lower())]
                rows += [row] * len(found)
                columns += found
            both.append((rows, columns, len(texts)))
        matrices = [
            sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, len(words))).tocsr()
            for rows, columns, size in both
        ]
        return matrices[0], matrices[1]

    @cached_property
    def lengths(self) -> FloatArray:
        """Words of each passage: float64[passages]."""
        return np.asarray(self._counts[0].sum(axis=1)).ravel()

    @cached_property
    def _rarity(self) -> FloatArray:
        present = np.asarray((self._counts[0] > 0).sum(axis=0)).ravel()
        return np.log(1 + (len(self.passages) - present + 0.5) / (present + 0.5))

    @cached_property
    def bm25(self) -> FloatArray:
        """BM25."""
        counts, queries = self._counts
        cells = counts.tocoo()
        norm = K1 * (1 - B + B * self.lengths / self.lengths.mean())
        weights = self._rarity[cells.col] * cells.data * (K1 + 1) / (cells.data + norm[cells.row])
        weighted = sparse.coo_matrix((weights, (cells.row, cells.col)), shape=counts.shape).tocsr()
        return np.asarray((queries @ weighted.T).todense())

    @cached_property
    def tfidf(self) -> FloatArray:
        """The cosine of tf-idf vectors."""
        vectors = []
        for counts in self._counts:
            weighted = counts @ sparse.diags(self._rarity)
            length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
            vectors.append(sparse.diags(1 / np.maximum(length, 1e-12)) @ weighted)
        return np.asarray((vectors[1] @ vectors[0].T).todense())

    @cached_property
    def overlap(self) -> FloatArray:
        """The share of a query's words, common ones left out, that the passage has; rare words count more."""
        counts, queries = ((each > 0).astype(np.float64) for each in self._counts)
        common = np.asarray(counts.sum(axis=0)).ravel() > _TOO_COMMON * len(self.passages)
        weights = sparse.diags(np.where(common, 0.0, self._rarity))
        total = np.asarray((queries @ weights).sum(axis=1)).ravel()
        return np.asarray((queries @ weights @ counts.T).todense()) / np.maximum(total, 1e-12)[:, None]

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """People's grades of every pair: int64[queries, passages]."""
        result = np.ones((len(self.queries), len(self.passages)), np.int64)
        place = {passage: column for column, passage in enumerate(self.passages)}
        for row, query in enumerate(self.queries):
            for passage, grade in self.grades[query].items():
                result[row, place[passage]] = grade
        return result


def collection(folder: Path, grade_of: Mapping[int, int] | None = None) -> Collection:
    """A collection from corpus.jsonl, queries.jsonl and qrels.trec; `grade_of` maps grades to 1–5."""
    passages, queries = (
        [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]
        for kind in ("corpus", "queries")
    )
    graded = rs.read_qrels(folder / "qrels.trec").to_dict()
    queries = [query for query in queries if query["_id"] in graded]
    return Collection(
        tuple(passage["_id"] for passage in passages),
        tuple(query["_id"] for query in queries),
        tuple(f"{passage.get('title', '')} {passage['text']}" for passage in passages),
        tuple(query["text"] for query in queries),
        {q: {p: grade_of[g] if grade_of else g for p, g in row.items()} for q, row in graded.items()},
    )


def ranked(scores: FloatArray, depth: int) -> NDArray[np.int64]:
    """The positions of each query's best passages: int64[queries, depth]."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :depth]


@dataclass(frozen=True)
class World:
    """People's labels of all pairs, a judge's of the same pairs, and runs."""

    human: rs.Qrels
    judge: rs.Qrels
    runs: Mapping[str, rs.Run]
    corpus_size: int


def llm_judge(judge: str) -> World:
    """LLMJudge: NIST's grades beside those of an LLM, and two runs made of people's grades and noise."""
    human = rs.read_qrels(SHARED / "judges" / "human.qrels").regraded(GRADE_MAP)
    graded = rs.read_qrels(SHARED / "judges" / f"{judge}.qrels").regraded(GRADE_MAP)
    return World(human, graded, {"one": made_run(human, 1.5, 1), "two": made_run(human, 3.0, 2)}, MS_MARCO)


def cranfield(noise: str, seed: int = 1, depth: int = 50, most_relevant: int | None = None) -> World:
    """Cranfield: the top 50 of BM25 and LSA, people's grades, and these made noisy.

    `most_relevant` leaves only so many relevant passages a query; the others get grade 2.
    """
    runs = {name: rs.read_run(SHARED / "cranfield" / "runs" / f"{name}.trec") for name in ("bm25", "lsa")}
    graded = rs.read_qrels(SHARED / "cranfield" / "qrels.trec").to_dict()
    labels = {}
    for query, grades in graded.items():
        pool = sorted({*grades, *(passage for run in runs.values() for passage in run[query][:depth])})
        labels[query] = {passage: grades.get(passage, 1) for passage in pool}
        if most_relevant is not None:
            best = sorted((p for p, g in grades.items() if g >= 4), key=lambda p: (-grades[p], p))
            labels[query] |= dict.fromkeys(best[most_relevant:], 2)
    human = rs.Qrels.of(labels)
    return World(human, noisy(human, noise, seed), runs, CRANFIELD_SIZE)


def made_run(human: rs.Qrels, noise: float, seed: int, depth: int = 50) -> rs.Run:
    """A run that orders each query's passages by people's grades and normal noise."""
    random = np.random.default_rng(seed)
    lists = {}
    for query in human:
        grades = human[query]
        scores = np.array(list(grades.values())) + random.normal(0, noise, len(grades))
        passages = list(grades)
        lists[query] = [passages[i] for i in np.argsort(-scores)[:depth].tolist()]
    return rs.Run.of(lists)


def equal_runs(world: World, seed: int, favoured: float = 0.0) -> World:
    """The first run, and one with other passages of the same grades by people at every rank.

    The judge raises what only the second has by one grade, with the probability `favoured`.
    """
    random = np.random.default_rng(seed)
    first = next(iter(world.runs.values()))
    lists, raised = {}, set[tuple[str, str]]()
    for query in world.human:
        grades = world.human[query]
        by_grade: dict[int, list[str]] = {}
        for passage in random.permutation(list(grades)).tolist():
            by_grade.setdefault(grades[passage], []).append(passage)
        lists[query] = [by_grade[grades.get(passage, 1)].pop() for passage in first[query] if passage in grades]
        raised |= {(query, passage) for passage in set(lists[query][:10]) - set(first[query][:10])}
    judge = {
        query: {
            p: min(5, g + int((query, p) in raised and random.random() < favoured))
            for p, g in world.judge[query].items()
        }
        for query in world.judge
    }
    judged_first = {query: [p for p in first[query] if p in world.human[query]] for query in world.human}
    runs = {"one": rs.Run.of(judged_first), "two": rs.Run.of(lists)}
    return World(world.human, rs.Qrels.of(judge), runs, world.corpus_size)


def noisy(human: rs.Qrels, noise: str, seed: int = 1) -> rs.Qrels:
    """People's grades, each replaced at random by the chances of a noisy judge."""
    chances = np.cumsum(np.array(NOISE[noise] + _OF_RELEVANT[noise]), axis=1)
    random = np.random.default_rng(seed)
    grades = (random.random(len(human.grade))[:, None] > chances[human.grade - 1, :-1]).sum(axis=1) + 1
    return rs.Qrels(human.queries, human.query, human.passages, grades.astype(np.int64))


@cache
def source_of(name: str) -> Collection:
    """Cranfield or SciFact with its texts."""
    return collection(SHARED / name, _SCIFACT if name == "scifact" else None)


@cache
def _places(name: str) -> tuple[dict[str, int], dict[str, int]]:
    source = source_of(name)
    return {q: row for row, q in enumerate(source.queries)}, {p: column for column, p in enumerate(source.passages)}


@cache
def _ranked(name: str, scores: str, depth: int = 200) -> Lists:
    source = source_of(name)
    columns = ranked(getattr(source, scores), depth).tolist()
    lists = zip(source.queries, columns, strict=True)
    return {query: [source.passages[column] for column in row] for query, row in lists}


def lists_of(name: str, run: str) -> Lists:
    """A run, 200 deep: LSA or BM25 as given with Cranfield, or one by the texts."""
    if run in ("lsa", "given bm25"):
        given = rs.read_run(SHARED / "cranfield" / "runs" / f"{run.removeprefix('given ')}.trec")
        return {query: list(given[query]) for query in source_of("cranfield").queries}
    return _ranked(name, run)


# -- judges --------------------------------------------------------------------------------------------


def _by_table(name: str, table: NDArray[np.float64], edges: list[float]) -> Judge:
    """Grade 1 below the first edge, 5 from the last."""
    rows, columns = _places(name)
    grades = np.searchsorted(edges, table, side="right") + 1
    return lambda query, passage, _: int(grades[rows[query], columns[passage]])


def overlap(name: str) -> Judge:
    """The share of the query's words that the passage has, from a fifth to half."""
    return _by_table(name, source_of(name).overlap, [0.2, 0.3, 0.4, 0.5])


def follows_score(name: str) -> Judge:
    """BM25's score over the best of the query."""
    scores = source_of(name).bm25
    return _by_table(name, scores / scores.max(axis=1, keepdims=True), [0.3, 0.45, 0.6, 0.8])


def two_grades(seed: int = 3) -> Judge:
    """5 or 1: misses a tenth of what is relevant, and accepts .15 of the rest, .3 of what people graded 3."""
    random = np.random.default_rng(seed)
    accepts = {1: 0.1, 2: 0.15, 3: 0.3, 4: 0.85, 5: 0.95}
    return lambda query, passage, grade: 5 if random.random() < accepts[grade] else 1


def first_ranks(lists: Lists, seed: int = 3) -> Judge:
    """A grade more for the first five ranks of a run, often one less beyond rank 20."""
    random = np.random.default_rng(seed)
    rank = {(query, passage): place for query, row in lists.items() for place, passage in enumerate(row, 1)}

    def judge(query: str, passage: str, grade: int) -> int:
        place = rank.get((query, passage), 1000)
        change = int(random.random() < 0.7) if place <= 5 else -int(place > 20 and random.random() < 0.5)
        return int(np.clip(grade + change + (random.random() < 0.1), 1, 5))

    return judge


def lenient_on_half(seed: int = 3) -> Judge:
    """A grade or two more on half of the queries, people's grade on the others."""
    random = np.random.default_rng(seed)
    lenient: dict[str, bool] = {}

    def judge(query: str, passage: str, grade: int) -> int:
        if query not in lenient:
            lenient[query] = bool(random.random() < 0.5)
        return min(5, grade + int(random.integers(0, 3))) if lenient[query] else grade

    return judge


def near_constant(seed: int = 3) -> Judge:
    """Grade 3 for all but a tenth of the pairs, which get people's grade."""
    random = np.random.default_rng(seed)
    return lambda query, passage, grade: grade if random.random() < 0.1 else 3


def graded(people: Grades, judge: Judge) -> rs.Qrels:
    """A judge's grades of what people graded."""
    return rs.Qrels.of({q: {p: judge(q, p, g) for p, g in row.items()} for q, row in people.items()})


# -- worlds --------------------------------------------------------------------------------------------


def of_texts(name: str, runs: tuple[str, ...], make: Callable[[], Judge], queries: int = 1000) -> World:
    """Cranfield or SciFact: the top 50 of the runs, and all that people found relevant."""
    source = source_of(name)
    lists = {run: lists_of(name, run) for run in runs}
    chosen = source.queries[:: max(1, -(-len(source.queries) // queries))]
    people = {}
    for query in chosen:
        pool = sorted({*source.grades[query], *(p for each in lists.values() for p in each[query][:50])})
        people[query] = {passage: source.grades[query].get(passage, 1) for passage in pool}
    whole = {run: rs.Run.of({q: each[q] for q in chosen}) for run, each in lists.items()}
    return World(rs.Qrels.of(people), graded(people, make()), whole, len(source.passages))


@cache
def _dl19() -> tuple[rs.Qrels, Lists]:
    labels = rs.read_qrels(SHARED / "trec" / "qrels.dl19-passage.txt").regraded(GRADE_MAP)
    run = rs.read_run(SHARED / "trec" / "run.msmarco-v1-passage.bm25-default.dl19.txt")
    return labels, {query: list(run[query]) for query in labels.queries}


def dl19(make: Callable[[Lists], Judge]) -> World:
    """TREC DL 2019: BM25 as it is, and its judged passages in another order that knows nothing of the grades."""
    labels, bm25 = _dl19()
    random = np.random.default_rng(4)
    other = {}
    for query, row in bm25.items():
        judged = [passage for passage in row if passage in labels[query]]
        keys = np.arange(len(judged)) + random.normal(0, 10, len(judged))
        other[query] = [judged[i] for i in np.argsort(keys).tolist()]
    runs = {"bm25": rs.Run.of(bm25), "judged only": rs.Run.of(other)}
    return World(labels, graded(labels.to_dict(), make(bm25)), runs, MS_MARCO)


def _score_alone(lists: Lists) -> Judge:
    """Grades by BM25's rank, whatever the passage says."""
    rank = {(query, passage): place for query, row in lists.items() for place, passage in enumerate(row, 1)}
    edges = [4, 12, 50, 300]
    return lambda query, passage, _: 5 - int(np.searchsorted(edges, rank.get((query, passage), 1000)))


def reranked_by_judges(judge: str, other: str) -> World:
    """LLMJudge: one run ranked by the judge's own grades, one by another judge's; equal grades in random order."""
    base = llm_judge(judge)
    random = np.random.default_rng(6)
    runs = {}
    for name, ranking in (("by the judge", base.judge), ("by another judge", llm_judge(other).judge)):
        lists = {}
        for query in base.human:
            passages = random.permutation(list(base.human[query])).tolist()
            lists[query] = sorted(passages, key=lambda passage, row=ranking[query]: -row.get(passage, 0))
        runs[name] = rs.Run.of(lists)
    return World(base.human, base.judge, runs, MS_MARCO)


BOTH = ("bm25", "lsa")
WORLDS: dict[str, Callable[[], World]] = {
    "Cranfield, overlap": lambda: of_texts("cranfield", BOTH, partial(overlap, "cranfield")),
    "Cranfield, follows BM25's score": lambda: of_texts("cranfield", BOTH, partial(follows_score, "cranfield")),
    "Cranfield, two grades": lambda: of_texts("cranfield", ("lsa", "tfidf"), two_grades),
    "Cranfield, overlap, 30 queries": lambda: of_texts("cranfield", BOTH, partial(overlap, "cranfield"), 30),
    "Cranfield, half lenient, 30 queries": lambda: of_texts("cranfield", ("lsa",), lenient_on_half, 30),
    "Cranfield, near-constant": lambda: of_texts("cranfield", BOTH, near_constant),
    "DL19, first ranks": lambda: dl19(first_ranks),
    "DL19, BM25's rank alone": lambda: dl19(_score_alone),
    "DL19, two grades": lambda: dl19(lambda _: two_grades()),
    "DL19, half lenient": lambda: dl19(lambda _: lenient_on_half()),
    "LLMJudge, runs by judges, Olz": lambda: reranked_by_judges("Olz-gpt4o", "RMITIR-llama38b"),
    "LLMJudge, runs by judges, TREMA": lambda: reranked_by_judges("TREMA-direct", "willia-umbrela1"),
    "SciFact (R = 1), overlap": lambda: of_texts("scifact", ("bm25", "tfidf"), partial(overlap, "scifact")),
    "SciFact (R = 1), two grades": lambda: of_texts("scifact", ("bm25", "tfidf"), two_grades),
}

# -- tails ---------------------------------------------------------------------------------------------

GRADED, DRAWN, LAST = 20, 10, 200


def with_tail(judge: Grades, seed: int) -> rs.Qrels:
    """What a judge graded of its grades of 200 ranks: the first 20, and 10 drawn below them."""
    random = np.random.default_rng(seed)
    records, chosen, size = [], [], []
    for query, row in judge.items():
        listed = list(row)
        below = len(listed) - GRADED
        tail = random.choice(listed[GRADED:], min(DRAWN, below), replace=False).tolist()
        for passages, how in ((listed[:GRADED], Chosen.POOL), (tail, Chosen.TAIL)):
            records += [(query, passage, row[passage]) for passage in passages]
            chosen += [int(how)] * len(passages)
            size += [below if how is Chosen.TAIL else 0] * len(passages)
    labels = rs.Qrels.from_records(records, scale="utility")
    kinds, sizes, by_people = np.array(chosen, np.uint8), np.array(size, np.int64), np.zeros(len(chosen), bool)
    labels.origins = LabelOrigins(kinds, by_people, labels.grade, sizes, tail_ranks=(GRADED + 1, LAST))
    return labels


def tail_world(name: str, run: str, judge: Callable[[rs.Qrels], rs.Qrels]) -> World:
    """A run's first 200 ranks, all graded by people and by a judge."""
    source, lists = source_of(name), lists_of(name, run)
    people = {q: {p: source.grades[q].get(p, 1) for p in lists[q][:LAST]} for q in source.grades}
    human = rs.Qrels.of(people)
    runs = {"run": rs.Run.of({q: lists[q][:LAST] for q in people})}
    return World(human, judge(human), runs, len(source.passages))


def _dice(human: rs.Qrels) -> rs.Qrels:
    random = np.random.default_rng(1)
    return rs.Qrels.of({q: {p: int(random.integers(1, 6)) for p in human[q]} for q in human})


def _rule(make: Callable[[], Judge]) -> Callable[[rs.Qrels], rs.Qrels]:
    return lambda human: graded(human.to_dict(), make())


#: The first five were at hand when the method was made; the others were not.
TAILS: dict[str, Callable[[], World]] = {
    "Cranfield, BM25, people": lambda: tail_world("cranfield", "given bm25", lambda human: human),
    "Cranfield, BM25, dice": lambda: tail_world("cranfield", "given bm25", _dice),
    **{
        f"Cranfield, BM25, {noise}": partial(tail_world, "cranfield", "given bm25", partial(noisy, noise=noise))
        for noise in ("lenient", "mild", "strict")
    },
    "Cranfield, LSA, overlap": lambda: tail_world("cranfield", "lsa", _rule(partial(overlap, "cranfield"))),
    "Cranfield, LSA, follows BM25": lambda: tail_world("cranfield", "lsa", _rule(partial(follows_score, "cranfield"))),
    "Cranfield, LSA, two grades": lambda: tail_world("cranfield", "lsa", _rule(two_grades)),
    "Cranfield, tf-idf, half lenient": lambda: tail_world("cranfield", "tfidf", _rule(lenient_on_half)),
    "SciFact, BM25, overlap": lambda: tail_world("scifact", "bm25", _rule(partial(overlap, "scifact"))),
    "SciFact, tf-idf, two grades": lambda: tail_world("scifact", "tfidf", _rule(two_grades)),
}


@cache
def world_of(name: str) -> World:
    """A world by its name: `judges:…`, `Cranfield:…`, `R = 1:…`, or one of WORLDS and TAILS."""
    kind, _, rest = name.partition(":")
    made = {"judges": llm_judge, "R = 1": partial(cranfield, most_relevant=1), "Cranfield": cranfield}
    return made[kind](rest) if rest else (WORLDS | TAILS)[name]()
