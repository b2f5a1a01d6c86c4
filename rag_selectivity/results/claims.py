"""Results of claim checks: which passage supports which claim, and the measures computed from that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.figures.figures import Facts, Figures, Rules
from rag_selectivity.figures.stored import figures_as_data
from rag_selectivity.inference.bootstrap import Bootstrap
from rag_selectivity.measures.base import Given, Outcome
from rag_selectivity.measures.covers import EXACT, smallest_cover
from rag_selectivity.measures.plan import plan_as_named
from rag_selectivity.results.difference import RunDifference, difference_of
from rag_selectivity.results.estimate import Estimate
from rag_selectivity.results.plain import Plain, flat, plain, plain_fields
from rag_selectivity.results.result import Result
from rag_selectivity.results.run_report import OfRuns, RunReport
from rag_selectivity.results.samples import Sample
from rag_selectivity.results.usage import Asked
from rag_selectivity.trust.agreement import Agreement

#: What the judge can be asked about each passage; the last one is about a response, not about a reference answer.
CHECKS = ("precision", "recall", "entities", "relevance")
GROUNDEDNESS = "groundedness"
ALL_CHECKS = (*CHECKS, GROUNDEDNESS)
#: The measure that a check is named for.
MEASURES = {
    "precision": "ContextPrecision",
    "recall": "ContextRecall",
    "entities": "ContextEntityRecall",
    "relevance": "ContextRelevance",
    GROUNDEDNESS: "Groundedness",
}
WHOLE = "ContextRecall(whole)"
REPEATED, SUPPORTING, SMALLEST = "RepeatedClaims", "SupportingPassages", "SmallestSet"
#: What the check `recall` says beside ContextRecall of the passages that support claims.
OF_SUPPORT = (REPEATED, SUPPORTING, SMALLEST)
#: Each measure as `docs/how-to/claims.md` defines it too.
DEFINITIONS = {
    "ContextPrecision": "mean precision at the ranks of the useful passages of the top K; 0 without any",
    "ContextRecall": "claims of the reference that a passage of the top K supports by itself / all of them",
    "ContextEntityRecall": "entities of the reference that the top K mention / all of them",
    "ContextRelevance": "statements of the top K that bear on the question / all of them",
    "Groundedness": "claims of the response that a passage of the top K supports by itself / all of them",
    WHOLE: "claims of the reference that the top K support when read together / all of them",
    REPEATED: "supported claims that more than one passage of the top K supports / all supported claims",
    SUPPORTING: "passages of the top K that support a claim, on average over the supported claims",
    SMALLEST: "the fewest passages of the top K that together support every claim that any of them supports",
}


class ClaimMeasure(Given):
    """A measure of claims at a depth, which a judge makes and no join; it prints as `ContextRecall@10`.

    >>> ClaimMeasure.parse("contextrecall@10")
    ContextRecall@10
    """

    @classmethod
    def named(cls, name: str, depth: int) -> ClaimMeasure:
        """A measure by its name; of how many passages support the same claim neither more nor less is better."""
        ends = (1.0, float(depth)) if name in (SUPPORTING, SMALLEST) else (0.0, 1.0)
        return cls(name=name, ends=ends, higher_is_better=None if name in OF_SUPPORT else True, at=depth)

    @classmethod
    def all_of(cls, check: str, depth: int) -> list[ClaimMeasure]:
        """All measures that a check gives."""
        return [cls.named(name, depth) for name in (MEASURES[check], *(OF_SUPPORT if check == "recall" else ()))]

    @classmethod
    def parse(cls, text: str) -> ClaimMeasure:
        """The measure that a text such as `ContextRecall@5` names.

        Raises
        ------
        InputError
            If there is no such measure, or no depth.
        """
        if not isinstance(text, str):
            raise InputError(f"a measure of claims is a text such as ContextRecall@5, got {text!r}")
        name, _, depth = map(str.strip, text.partition("@"))
        known = next((each for each in DEFINITIONS if each.casefold() == name.casefold()), None)
        if known is None:
            choose = f"{did_you_mean(name, DEFINITIONS)}; choose {', '.join(DEFINITIONS)}"
            raise InputError(f"unknown measure of claims {name!r}{choose}")
        if not depth.isdecimal() or not int(depth):
            raise InputError(f"{text.strip()}: name the depth, as in {known}@5")
        return cls.named(known, int(depth))


#: Of a check that was not made, or whose claims are not known.
NOT_KNOWN = -1
#: The run of samples that come without a run.
SAMPLES = "samples"
_CHECK_OF = {**{name: check for check, name in MEASURES.items()}, **dict.fromkeys(OF_SUPPORT, "recall")}


class ClaimCheck(Plain):
    """The checks of one sample. Rows are claims or entities, columns are passages in rank order.

    Attributes
    ----------
    sample : Sample
    claims, entities : tuple of str
        The claims and the entities of the reference answer.
    support : bool[claims, passages]
        Whether a passage alone supports a claim.
    mentions : bool[entities, passages]
    useful : bool[passages]
        Whether a passage helps to reach the reference answer.
    statements, relevant : int64[passages]
        The number of statements of each passage, and how many of them are relevant to the question.
    whole : {K: share of claims that the top K support when read together}
    known : {check: number of passages}
        How many passages from the top the judge answered for: figures of more are NaN. −1 if the check was not made or
        the claims are not known. Default: all.
    response_claims : tuple of str
        The claims of the response.
    grounds : bool[response claims, passages]
        Whether a passage alone supports a claim of the response.
    """

    also = ("fingerprint",)

    sample: Sample
    claims: tuple[str, ...]
    entities: tuple[str, ...]
    support: NDArray[np.bool_]
    mentions: NDArray[np.bool_]
    useful: NDArray[np.bool_]
    statements: NDArray[np.int64]
    relevant: NDArray[np.int64]
    whole: Mapping[int, float] = field(default_factory=dict)
    known: Mapping[str, int] = field(default_factory=dict)
    response_claims: tuple[str, ...] = ()
    grounds: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change if the question or the reference answer changes."""
        texts = "\0".join((self.sample.user_input, self.sample.reference or ""))
        return blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """As plain data, with the smallest set and the unsupported claims of the whole list."""
        every = self.support.shape[1]
        return {**super().to_dict(), "smallest_set": [*self.smallest_set(every)], "unsupported": [*self.missed(every)]}

    def is_known(self, check: str, depth: int) -> bool:
        """Whether the judge answered for all of the top K."""
        passages = len(self.sample.retrieved_contexts)
        return self.known.get(check, passages) >= min(depth, passages)

    def value(self, measure: str | ClaimMeasure) -> float:
        """The figure of a measure such as "ContextRecall@5"; NaN if it is undefined, or if a call failed.

        ContextPrecision and ContextRelevance are undefined without passages and without statements, the others without
        claims or entities; RepeatedClaims, SupportingPassages and SmallestSet where the top K support no claim. There,
        a passage that stands twice in the list (under one id, or without ids with one text) counts once.
        """
        asked = ClaimMeasure.parse(measure) if isinstance(measure, str) else measure
        depth = int(asked.at or 0)
        if asked.name == WHOLE:
            return self.whole.get(depth, math.nan)
        check = _CHECK_OF[asked.name]
        if not self.is_known(check, depth):
            return math.nan
        if asked.name in OF_SUPPORT:
            return self._of_support(asked.name, depth)
        if check == "precision":
            return _average_precision(self.useful[:depth])
        if check == "relevance":
            total = int(self.statements[:depth].sum())
            return float(self.relevant[:depth].sum() / total) if total else math.nan
        table = {"recall": self.support, "entities": self.mentions, GROUNDEDNESS: self.grounds}[check]
        return float(table[:, :depth].any(axis=1).mean()) if len(table) else math.nan

    def smallest_set(self, depth: int) -> tuple[int, ...]:
        """The smallest set of passages of the top K that supports every claim that any of them supports.

        Positions from 1; empty if the top K support no claim. Exact up to 20 supporting passages. With more, it is
        the greedy cover, at most 1 + ½ + … + 1/m times as large, where m is the most claims that a passage supports.
        """
        return tuple(place + 1 for place in smallest_cover(self.support[:, :depth]))

    def smallest_is_exact(self, depth: int) -> bool:
        """Whether no set smaller than `smallest_set` supports as much."""
        return int(self.support[:, :depth].any(axis=0).sum()) <= EXACT

    def missed(self, depth: int) -> tuple[str, ...]:
        """The claims of the reference that no passage of the top K supports; none if that is not known."""
        if not self.is_known("recall", depth):
            return ()
        return tuple(claim for claim, row in zip(self.claims, self.support[:, :depth], strict=True) if not row.any())

    def _of_support(self, name: str, depth: int) -> float:
        """What the passages of the top K that support claims say together; each passage counts once."""
        if name == SMALLEST:
            return float(len(self.smallest_set(depth)) or math.nan)
        first = {id_: place for place, id_ in reversed(list(enumerate(self.sample.passage_ids[:depth])))}
        counts = self.support[:, sorted(first.values())].sum(axis=1)
        if not len(counts := counts[counts > 0]):
            return math.nan
        return float((counts > 1).mean() if name == REPEATED else counts.mean())


def _average_precision(useful: NDArray[np.bool_]) -> float:
    """Mean precision at the ranks of the useful passages; 0 without any, NaN without passages."""
    if not len(useful):
        return math.nan
    ranks = np.flatnonzero(useful) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).mean()) if len(ranks) else 0.0


#: The rules of all figures of claims.
RULES = Rules("claims", {}, False, None)


def figures_of_claims(checks: Sequence[ClaimCheck], measures: Sequence[ClaimMeasure]) -> Figures:
    """The figures of claim checks, a row for each sample, whose label is its question and reference answer."""
    labels = np.array([int(check.fingerprint, 16) for check in checks], np.uint64)
    outcomes = []
    for measure in measures:
        values = np.array([[check.value(measure)] for check in checks], np.float64)
        outcomes.append(Outcome((values,), "no sample has what the check needs", bounds=measure.ends))
    samples = tuple(check.sample.id for check in checks)
    return Figures(samples, plan_as_named(measures), outcomes, stored=(Facts(labels), RULES))


class ClaimRun(RunReport):
    """One run's figures of claims, and `samples`, a ClaimCheck for each query; its caveats are about the judge."""

    samples: tuple[ClaimCheck, ...] = ()


class ClaimReport(OfRuns[ClaimRun], Asked, Result, kw_only=True):
    """What `check_claims` returns: `report["ContextRecall@5"]`, or with several runs `report["dense", …]`.

    Attributes
    ----------
    runs : {name: ClaimRun}
        Samples that come without a run are the run `samples`.
    baseline : str
        The run that `differences` compare the others with.
    differences : tuple of RunDifference
        The paired difference of each measure and depth; empty with one run.
    settings : {name: value}
        How the intervals were made.
    agreement : Agreement or None
        The judge's verdicts (1: the passage supports the claim) against people's; None without any of people.
    notes : tuple of str
        Queries that are left out, and the like.
    """

    schema = "rag-selectivity/claims/2"

    runs: Mapping[str, ClaimRun]
    checks: tuple[str, ...]
    depths: tuple[int, ...]
    calls: int
    judge: str
    resume: str | None = None
    baseline: str = SAMPLES
    differences: tuple[RunDifference, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: What made its intervals, for those of drops.
    bootstrap: Bootstrap | None = field(default=None, repr=False, compare=False)
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()
    #: The file that it was read from, which holds its figures alone; None for a new report.
    path: Path | None = field(default=None, repr=False, compare=False)

    @property
    def samples(self) -> tuple[ClaimCheck, ...]:
        """The checks of the only run."""
        return self.run().samples

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The means of the only run."""
        return self.run().estimates

    def difference(self, run: str, measure: str | ClaimMeasure) -> RunDifference:
        """The difference between a run and the baseline run under a measure."""
        return difference_of(self.differences, run, measure)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        # Of two verdicts all weights give the same kappa.
        said = ("n", "queries", "exact", "kappa", "ac2", "bias", "confusion", "verdict", "reason")
        return {
            "schema": self.schema,
            **plain_fields(self, "runs", "agreement"),
            "agreement": self.agreement and {name: plain(getattr(self.agreement, name)) for name in said},
            "runs": {
                name: {
                    "measures": plain(run.estimates),
                    "caveats": plain(run.caveats),
                    "label_caveats": plain(run.label_caveats),
                    "per_sample": plain(run.samples),
                    "per_query": figures_as_data(run.figures, run.estimates),
                }
                for name, run in self.runs.items()
            },
        }

    def refuse_other(self, judge: str, runs: Sequence[str]) -> None:
        """Refuse to compare with another judge, or without one of the runs; this is known before anything is asked.

        Raises
        ------
        InputError
        """
        if judge != self.judge:
            fact = f"{self.path} cannot be compared: the judge is {judge} here and {self.judge} there"
            raise InputError(f"{fact}, and two judges differ in what they take for support; check both with one judge")
        for name in runs:
            self.run_like(name, len(runs))

    def table(self) -> Iterable[dict[str, Any]]:
        """One row for each run, measure and depth."""
        for name, run in self.runs.items():
            yield from ({"run": name, "measure": key, **flat(each)} for key, each in run.estimates.items())
