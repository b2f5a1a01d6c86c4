"""A fuzzer: changes real inputs of every kind at random, and looks for another error than one of this package.

`python -m tests.fuzz --help` says how to run it; `tests/test_fuzz.py` runs a small part of it.
"""
