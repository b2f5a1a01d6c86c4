"""What an LLM makes of a set: RA-nWG, the recall-free measures and UDCG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import rag_selectivity as rs

from .claim import Claim, NotRebuilt, Source, Value
from .figures import ranked, rarity_weight, share_of_ceiling

#: Equal numbers of 5s, 4s and 3s: the weights are then the base utilities.
_EVEN = {5: 1, 4: 1, 3: 1}

RARITY = Source(
    "RA-nWG: the preprint",
    "“Practical RAG Evaluation: A Rarity-Aware Set-Based Metric and Cost-Latency-Quality Trade-offs”, arXiv "
    "2511.09545. It prints no worked query, so the weights are checked that it fixes. Its labels and runs are not "
    "public; for its %PROC, a thousand made queries have the printed means of RA-nWG and PROC.",
    (
        *(
            Claim("2.4, base utilities", f"b{grade}", published, lambda _, grade=grade: rarity_weight(grade, _EVEN))
            for grade, published in ((5, "1.0"), (4, "0.5"), (3, "0.1"))
        ),
        *(
            Claim(
                "2.4, caps",
                f"w{grade} of one {grade} among ten 5s",
                published,
                lambda _, grade=grade: rarity_weight(grade, {5: 10, grade: 1}),
            )
            for grade, published in ((4, "1.0"), (3, "0.25"))
        ),
        *(
            Claim(
                "2.4, fallback",
                f"w{grade} without a 5",
                published,
                lambda _, grade=grade: rarity_weight(grade, {4: 2, 3: 5}),
            )
            for grade, published in ((4, "1"), (3, "0.2"))
        ),
        *(
            Claim(
                where,
                f"%PROC of RA-nWG@{depth}, {actual} of {ceiling}",
                published,
                lambda _, actual=actual, ceiling=ceiling: share_of_ceiling(actual, ceiling),
            )
            for where, depth, actual, ceiling, published in (
                ("Table 4", 10, "0.852", "1.000", "85.2%"),
                ("Table 4", 30, "0.918", "0.988", "92.9%"),
                ("Table 5, 5.2", 10, "0.795", "0.959", "~83%"),
                ("Table 5, 5.2", 10, "0.804", "0.906", "~89%"),
                ("Table 6, 5.2", 30, "0.828", "0.898", "~92%"),
                ("Table 6, 5.2", 30, "0.817", "0.847", "~96.5%"),
                ("Table 6, 5.2", 30, "0.818", "0.936", "~87%"),
            )
        ),
    ),
)


def _by_hand(where: str, formula: str, value: str, ranking: str, measure: str, missed: int = 0) -> Claim:
    what = f"{formula}, 3 of 5 relevant, α = .5"
    return Claim(where, what, value, lambda _: ranked(ranking, measure, missed=missed), counts=False)


RECALL_FREE = Source(
    "T, F and Fe: the recall-free paper",
    "“How important is Recall for Measuring Retrieval Quality?”, arXiv 2512.20854, and its code "
    "(PrimerAI/primer-research, recall_role/corr.py). Of the paper only the beginning could be read "
    "here; neither that nor the code prints an example. The figures in the column “published” are worked "
    "out by hand from the formulas, which is less than a check against the source, and are not counted.",
    (
        _by_hand("T as the docstring of T has it", "((1−α)·3 − α·2)/5", "0.1", "RNRRN", "T@5"),
        _by_hand("T in corr.py", "(1−α)·3 − α·2/5", "1.3", "RNRRN", "T(form=code)@5"),
        _by_hand("F in corr.py", "3/(5α + 6(1−α)), 6 in all", "0.545", "RNRRN", "F(alpha=.5)@5", missed=3),
        _by_hand("Fe in corr.py", "3/(5α + 4(1−α)), 4 in the top 10", "0.667", "RNRRNRNNNN", "Fe@5"),
    ),
)

_UDCG = "golden/udcg.json"


def _udcg_claims(data: Path) -> Sequence[Claim]:
    """A claim for each output of the authors' tool, and one with another weight."""
    path = data / _UDCG
    if not path.exists():
        return ()
    examples = json.loads(path.read_text(encoding="utf-8"))
    outputs = [(example, model, value) for example in examples for model, value in example["udcg"].items()]
    found = [
        Claim(
            f"{example['example_id']}, {model.rpartition('/')[2]}",
            "UDCG",
            repr(value),
            lambda _, example=example, model=model: _udcg(example, model),
            (_UDCG,),
        )
        for example, model, value in outputs
    ]
    example, model, value = outputs[0]
    third = Claim(
        found[0].where,
        "UDCG with a weight of 1/3",
        repr(value),
        lambda _: _udcg(example, model, 1 / 3),
        (_UDCG,),
        differs="the tool's weight of a distractor is .333, and ours by default; 1/3 is not what it computes",
        counts=False,
    )
    return [*found, third]


def _udcg(example: dict[str, object], model: str, weight: float = 0.333) -> Value:
    passages: list[dict[str, dict[str, dict[str, float]]]] = example["passages"]  # type: ignore[assignment]
    scores = [1 - passage["models_info"][model]["no_res_prob"] for passage in passages]
    return rs.measures.udcg(scores, [bool(passage["is_relevant"]) for passage in passages], weight=weight)


UDCG = Source(
    "UDCG: the authors' tool",
    "GiovanniTRA/UDCG, outputs of src/compute_udcg_scores.py (“Redefining Retrieval Evaluation in the Era of LLMs”, "
    "arXiv 2510.21440).",
    (),
    more=_udcg_claims,
)

NOT_REBUILT = (
    NotRebuilt(
        "RA-nWG: the preprint",
        "RA-nWG, N-Recall and PROC of tables 1 to 8 and 17 to 24",
        "the corpus, the 50 questions and the labels are not public",
        "with labels of your own (rag-gs makes some): `rag-selectivity evaluate --scale utility --qrels LABELS --run "
        "RUN --pool POOL --depths 10,20,30`",
    ),
    NotRebuilt(
        "RA-nWG: the preprint",
        "%PROC of N-Recall4+ in table 4",
        "rag-selectivity has PROC for RA-nWG alone",
        "–",
    ),
    NotRebuilt(
        "RA-nWG: the post",
        "“Redefining RAG Evaluation: A Set-Based Approach (Beyond nDCG)”: its examples",
        "only the beginning of the post was found, which holds no figure",
        "add the figures to `benchmarks/published_claims/utility.py`",
    ),
    NotRebuilt(
        "T, F and Fe: the recall-free paper",
        "correlations with the quality of the responses",
        "the tables were not found, and the data set (primer-ai/retrieval-response, samples_graded.json) is not at "
        "hand; Simulations, “The table of the recall-free paper”, has the same table for other data",
        "`validate` with the grades as scores: its segments are the paper's narrow and wide sets (K/N_p below 1, and "
        "from 1 on); the authors' nDCG divides by the gain of the positives that were found, not of all",
    ),
    NotRebuilt(
        "UDCG: the authors' tool",
        "correlations with the accuracy of answers",
        "they need the answers of six LLMs",
        "`udcg` for each sample, then a rank correlation",
    ),
)
