"""Below the mean: figures of groups of queries."""
