"""A row is scored as `mlflow.genai.evaluate` scores it; runs are tried in the tests, since a store takes seconds."""

from rag_selectivity_mlflow import selectivity_scorer

scorer = selectivity_scorer("BoR@1", labels={"who?": ["d1"]}, corpus_size=8)
success, chance = scorer(inputs={"question": "who?"}, outputs={"documents": ["d1"]})
assert (success.name, success.value) == ("Success_at_1", 1.0)
assert (chance.name, chance.value) == ("RandomSuccess_at_1", 0.125)
