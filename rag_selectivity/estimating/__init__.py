"""Figures as estimates and differences: with intervals, reasons and caveats."""
