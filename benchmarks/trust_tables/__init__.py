"""The tables of what labels are worth; `benchmarks/simulations.py` prints them."""
