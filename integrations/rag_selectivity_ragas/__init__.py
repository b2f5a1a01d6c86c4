"""rag-selectivity for Ragas: an evaluation dataset's contexts as a core `Run`.

Needs the extra `rag-selectivity[ragas]`.
"""

from __future__ import annotations

from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from ragas import EvaluationDataset
except ImportError as error:
    raise MissingExtraError(f"a ragas that imports ({error})", "ragas", "rag_selectivity_ragas") from error

from rag_selectivity import InputError, Run

__all__ = ["RagasJudge", "run_from_dataset"]


def __getattr__(name: str) -> Any:
    # Judges need the extra [judge], which the rest does without.
    if name == "RagasJudge":
        from rag_selectivity_ragas.judge import RagasJudge

        return RagasJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run_from_dataset(dataset: EvaluationDataset) -> Run:
    """What each sample retrieved, by `retrieved_context_ids`; the query id is the sample's `user_input`.

    Raises InputError for a sample without ids, and for a question that is asked twice.
    """
    lists: dict[str, list[str | int]] = {}
    for number, sample in enumerate(dataset.samples, 1):
        query, ids = sample.user_input, getattr(sample, "retrieved_context_ids", None)
        if ids is None:
            raise InputError(f"sample {number} ({query!r}) has no retrieved_context_ids")
        if query in lists:
            raise InputError(f"sample {number} asks {query!r} again; questions must differ")
        lists[query] = list(ids)
    return Run.from_dict(lists)
