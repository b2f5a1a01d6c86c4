"""The tables of what labels are worth; `python benchmarks/trust.py` prints all of them."""
