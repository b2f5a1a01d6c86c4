"""Intervals, tests and the figures of samples."""
