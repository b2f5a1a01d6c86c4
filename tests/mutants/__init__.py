"""Faults put into the formulas one at a time, to see whether the tests notice: `python -m tests.mutants`."""
