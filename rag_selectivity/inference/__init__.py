"""Intervals and tests: the ends, the p-value and the verdict of a figure come from one distribution."""
