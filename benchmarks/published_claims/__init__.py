"""What the sources publish, with the inputs: the claims that `benchmarks/published.py` computes again."""

from . import bits_over_random, classic, utility
from .claim import Claim, NotRebuilt, Row, Source

__all__ = ["NOT_REBUILT", "SOURCES", "Claim", "NotRebuilt", "Row", "Source"]

SOURCES = (
    bits_over_random.POST,
    bits_over_random.TOOL,
    utility.RARITY,
    utility.RECALL_FREE,
    utility.UDCG,
    classic.BOOK,
    classic.RAGAS,
    classic.ANSERINI,
    classic.TREC_EVAL,
)
NOT_REBUILT = (*bits_over_random.NOT_REBUILT, *utility.NOT_REBUILT, *classic.NOT_REBUILT)
