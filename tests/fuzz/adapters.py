"""The kinds of input of the adapters: changed objects of the real frameworks."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import rag_selectivity as rs
from tests.fuzz.changes import JSON_ATOMS, changed_value
from tests.fuzz.kind import Kind
from tests.fuzz.seeds import LABELS, RUN, TEXTS

METADATA = {"id": "d1", "source": "s", "page": 3, "more": {"a": ["b"]}}
MEASURES = ("Success@1", "RA-nWG@2", "Harm@2", "RandomSuccess@1")


def sometimes(random: Random, value: Any, share: float = 0.3) -> Any:
    """A value, changed in some of the inputs."""
    return changed_value(random, value) if random.random() < share else value


def metadata_of(random: Random) -> dict[str, Any]:
    """Metadata that a framework takes: a dict whose keys are texts."""
    found = changed_value(random, METADATA)
    return found if isinstance(found, dict) and all(isinstance(key, str) for key in found) else {}


def ragas_rows(random: Random, folder: Path) -> object:
    from rag_selectivity_ragas import selectivity

    rows = [
        {
            "user_input": query,
            "retrieved_context_ids": RUN[query],
            "retrieved_contexts": [TEXTS[each] for each in RUN[query]],
            "reference_context_ids": ["d1"],
            "reference": "r",
            "response": "r",
        }
        for query in RUN
    ]
    labels = sometimes(random, LABELS, 0.2)
    return selectivity(changed_value(random, rows), labels, corpus_size=100, scale="utility")


def langchain_documents(random: Random, folder: Path) -> object:
    from langchain_core.documents import Document
    from rag_selectivity_langchain.documents import candidates_of, identities_of

    document = Document(page_content="text", metadata=metadata_of(random))
    return identities_of([document], random.choice((None, "id", "text", "source", "none"))), candidates_of(document)


def ir_measures_call(random: Random, folder: Path) -> object:
    import ir_measures
    from rag_selectivity_ir_measures import BoR, Harm

    run = {query: {passage: float(-rank) for rank, passage in enumerate(RUN[query])} for query in RUN}
    # It asserts the type itself.
    sizes = [each for each in JSON_ATOMS if isinstance(each, int) and type(each) is not bool]
    measures = [Harm @ 2, BoR(N=random.choice(sizes), scale="utility") @ random.choice((1, 3))]
    return ir_measures.calc_aggregate(measures, LABELS, run)


def llama_index(random: Random, folder: Path) -> object:
    """Nodes with changed metadata as ids, the metric with changed lists, or the evaluator of a changed retriever."""
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from pydantic import ValidationError
    from rag_selectivity_llama_index import SelectivityEvaluator, SelectivityMetric, identity_of, run_from_nodes
    from rag_selectivity_llama_index.nodes import candidates_of

    identity = random.choice(("node_id", "ref_doc_id", "text", "source", "id", "more", "none"))
    name = random.choice(MEASURES)
    match random.randrange(3):
        case 0:
            node = TextNode(id_=random.choice(("d1", "", "\x00", "\ud800")), text="text", metadata=metadata_of(random))
            candidates_of(node)
            run_from_nodes({"q1": [NodeWithScore(node=node, score=0.5)]})
            return identity_of(node, identity)
        case 1:
            metric = SelectivityMetric(name, sometimes(random, LABELS), scale="utility", corpus_size=100)
            expected = sometimes(random, ["d1"])
            try:
                return metric.compute(
                    "q9", expected, changed_value(random, RUN["q1"]), query_id=sometimes(random, "q1")
                )
            except ValidationError:  # of its own result
                return None

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> Any:
            nodes = [
                NodeWithScore(node=TextNode(id_=each, text=TEXTS[each], metadata=metadata_of(random)), score=0.5)
                for each in RUN["q1"]
            ]
            return sometimes(random, nodes)

    options: dict[str, Any] = {"corpus_size": 100, "scale": "utility", "depths": [1, 2], "identity": "auto"}
    changed = random.choice([*options, "labels", "retrieved"])
    options = {each: changed_value(random, options[each]) if each == changed else options[each] for each in options}
    labels = changed_value(random, LABELS) if changed == "labels" else LABELS
    evaluator = SelectivityEvaluator(Fixed(), labels=labels, **options)
    return evaluator.evaluate_dataset({query: TEXTS[query] for query in RUN}, bootstrap=None, workers=1)


def deepeval_case(random: Random, folder: Path) -> object:
    """A metric with changed labels on a test case with changed metadata; and BoR of changed results."""
    os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    os.environ.setdefault("DEEPEVAL_DISABLE_DOTENV", "1")
    from deepeval.test_case import LLMTestCase
    from pydantic import ValidationError
    from rag_selectivity_deepeval import SelectivityMetric, bor_from_result

    if random.random() < 0.2:
        return bor_from_result(changed_value(random, []), k=1, bootstrap=rs.Bootstrap(20))
    metadata = changed_value(random, {"query_id": "q1", "retrieved_ids": RUN["q1"]})
    contexts = sometimes(random, [TEXTS["d1"]])
    try:
        case = LLMTestCase(input="q2", name="case", metadata=metadata, retrieval_context=contexts)
    except (ValidationError, TypeError):  # what DeepEval itself refuses
        return None
    threshold = random.choice((None, 0.5))
    labels = sometimes(random, LABELS)
    metric = SelectivityMetric(random.choice(MEASURES), labels, scale="utility", corpus_size=100, threshold=threshold)
    return metric.measure(case), metric.is_successful()


def mlflow_row(random: Random, folder: Path) -> object:
    """A scorer with changed labels on a changed row."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from rag_selectivity_mlflow import metric_name, selectivity_scorer

    metric_name(random.choice(MEASURES))
    labels = sometimes(random, LABELS)
    scorer = selectivity_scorer("BoR@1", random.choice(MEASURES), labels=labels, scale="utility", corpus_size=100)
    row = {
        "inputs": {"question": "q1"},
        "outputs": {"documents": ["d1", {"id": "d2", "page_content": "text", "metadata": METADATA}]},
        "expectations": {"relevant": {"d1": 5}},
    }
    part = random.choice(list(row))
    row[part] = changed_value(random, row[part])
    # A host gives dicts, or None.
    row["inputs"], row["expectations"] = (
        {"question": row[name]} if not isinstance(row[name], dict) else row[name] for name in ("inputs", "expectations")
    )
    return scorer(**row)


KINDS: tuple[Kind, ...] = (
    Kind("Ragas rows", ragas_rows, slow=True),
    Kind("LangChain documents", langchain_documents, slow=True),
    Kind("ir_measures", ir_measures_call, slow=True),
    Kind("LlamaIndex", llama_index, slow=True),
    Kind("DeepEval", deepeval_case, slow=True),
    Kind("MLflow", mlflow_row, slow=True),
)
