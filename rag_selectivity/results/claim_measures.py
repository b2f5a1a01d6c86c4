"""The measures of claim checks: their names, definitions and ranges. `results.claims` has their figures."""

from __future__ import annotations

import re

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.measures.base import Given

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
_PARSED = re.compile(r"(?P<name>[^@]+?)@(?P<depth>\d+)")


class ClaimMeasure(Given):
    """A measure of claims at a depth, which a judge makes and no join; it prints as `ContextRecall@10`.

    >>> ClaimMeasure.parse("contextrecall@10")
    ContextRecall@10
    """

    @classmethod
    def named(cls, name: str, depth: int) -> ClaimMeasure:
        """A measure by its name; of how many passages support the same claim neither more nor less is better."""
        lowest, highest = (1.0, float(depth)) if name in (SUPPORTING, SMALLEST) else (0.0, 1.0)
        return cls(name, lowest, highest, None if name in OF_SUPPORT else True, at=depth)

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
        found = _PARSED.fullmatch(text.strip())
        name = (found["name"] if found else text.partition("@")[0]).strip()
        by_name = {known.casefold(): known for known in DEFINITIONS}
        if name.casefold() not in by_name:
            raise InputError(
                f"unknown measure of claims {name!r}{did_you_mean(name, DEFINITIONS)}; choose {', '.join(DEFINITIONS)}"
            )
        if found is None or not int(found["depth"]):
            raise InputError(f"{text.strip()}: name the depth, as in {by_name[name.casefold()]}@5")
        return cls.named(by_name[name.casefold()], int(found["depth"]))
