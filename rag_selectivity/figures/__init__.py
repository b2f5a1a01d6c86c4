"""Figures: one table by query, from which every report, slice, comparison and gate is made."""
