"""How many relevant passages several sets hold, from random passages of each: sets of different sizes, an interval."""

from rag_selectivity.measures.base import FloatArray
from rag_selectivity.tables.ids import IntArray


def sampled_total(
    sizes: IntArray, labelled: IntArray, relevant: IntArray, tail: float, worth: FloatArray | float = 1.0
) -> tuple[float, float, float]:
    """The relevant passages of some sets together, from passages of each set that were drawn at random and labelled.

    The value, and an interval with an error of at most about `tail` on each side. Each labelled passage stands for
    size/labelled passages of its set (Horvitz and Thompson 1952): unbiased.

    The interval is Clopper and Pearson's at the number of equal labels whose estimate would vary as this one does (Korn
    and Graubard 1998). At the upper end, one more relevant label of the largest weight is allowed for, as in Fay and
    Feuer (1997): a set in which none was found may hold some. What is labelled is known, so both ends keep to it, and
    sets that are labelled whole vary in nothing. If all labels stand for equally many of very many passages, it is
    Clopper and Pearson's own interval, which holds for sets with different rates too (Hoeffding 1956).

    Parameters
    ----------
    sizes, labelled, relevant : int64[sets]
        The passages of each set, those that were labelled (at least one), and those of them that are relevant.
    tail : float
    worth : float64[sets]
        What a relevant passage of a set adds to the total; 1 for a count.

    References
    ----------
    Fay and Feuer 1997, Confidence intervals for directly standardized rates, Statistics in Medicine 16.
    Korn and Graubard 1998, Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data, Survey Methodology 24.
    """
    from scipy.special import betaincinv

    whole, least = float((worth * sizes).sum()), float((worth * relevant).sum())
    most = whole - float((worth * (labelled - relevant)).sum())
    weight = worth * sizes / labelled
    spread = weight * worth * (sizes / labelled - 1)

    def end(total: float, variance: float, share: float) -> float:
        hits, labels = total**2 / variance, total * whole / variance
        possible = share == tail or labels > hits
        return whole * float(betaincinv(hits, labels - hits + 1, share)) if possible else most

    value, variance = float((weight * relevant).sum()), float((spread * relevant).sum())
    low, high = end(value, variance, tail) if variance > 0 else value, value
    if (spread > 0).any():
        high = end(value + float(weight.max()), variance + float(spread.max()), 1 - tail)
    return value, max(low, least), min(high, most)
