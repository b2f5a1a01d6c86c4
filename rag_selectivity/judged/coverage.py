"""What a join left out, added or treated specially."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of what the join left out, added or treated specially, and of labels without and with a grade."""

    missing_from_run: int = 0
    not_in_qrels: int = 0
    duplicates: int = 0
    repeated_judgments: int = 0
    negative_judgments: int = 0
    outside_pool: int = 0
    missing_from_pool: int = 0
    expected: int = 0
    graded: int = 0

    def notes(self, clipped: int) -> list[str]:
        """Notes on what the join and the random draws treated specially; `clipped` comes from `clipped_at`."""
        counted = (
            (clipped, "queries have a corpus smaller than K: their random draw is the whole corpus"),
            (self.duplicates, "passages repeat an earlier passage of their list"),
            (self.negative_judgments, "judgments below 0 were treated as not judged"),
            (self.outside_pool, "judged passages of the run are not in its pool and were added to it"),
            (self.missing_from_pool, "queries are not in the pool: their own lists are used as their pools"),
            (
                self.expected if self.graded else 0,
                f"of {self.expected + self.graded} labels are expected ids without a grade: they count as relevant, "
                f"and everything else that their queries retrieved is unjudged",
            ),
        )
        return [f"{count} {what}" for count, what in counted if count]
