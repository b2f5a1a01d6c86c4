"""The join of judgments and a run."""
