"""Figures calibrated by what people said about a few of the pairs that a judge graded."""
