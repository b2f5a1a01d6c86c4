"""`validate`: which measure at which K follows the scores of the answers."""

from rag_selectivity.validate.answers import compared_with_answers
from rag_selectivity.validate.validating import validate

__all__ = ["compared_with_answers", "validate"]
