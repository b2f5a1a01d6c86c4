"""Evaluation of data larger than memory, and on many machines."""
