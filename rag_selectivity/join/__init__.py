"""The join of a run and its judgments."""
