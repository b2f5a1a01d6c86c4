"""Data larger than memory, and many machines."""
