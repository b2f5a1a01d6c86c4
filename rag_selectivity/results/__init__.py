"""Results as values: estimates, reports, comparisons."""
