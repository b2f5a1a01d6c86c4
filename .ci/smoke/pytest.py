"""An assertion on a report holds, and another fails with the figure."""

from rag_selectivity_pytest import Retrievals, assert_selectivity

retrievals = Retrievals()
retrievals.record("who?", ["d1"])
report = retrievals.report({"who?": ["d1"]}, corpus_size=8, measures=["BoR@1"])
assert_selectivity(report, "BoR@1 > 2")
try:
    assert_selectivity(report, "BoR@1 > 4")
except AssertionError as error:
    message = str(error)
assert "BoR@1 = 3 <= 4" in message
