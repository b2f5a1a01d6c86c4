"""The wall: frozen figures that decide, while the package is rebuilt, whether figures stay.

It knows the public API (`import rag_selectivity as rs`, names in its `__all__`), the command line and the adapters, and
no inner module. A scenario is a function that returns {key: value}; what it returned when it was accepted is stored.

    python -m tests.wall                       run all, print the first differences, exit with 1 if there are any
    python -m tests.wall compare formats/beir  only those whose name holds one of these
    python -m tests.wall --accept formats/beir store what a scenario returns now (or `all`)
    python -m tests.wall --commits main..HEAD  check that no commit touches both scenarios and what is stored

To add a scenario
-----------------
1. Write a function without arguments into a module of `scenarios/`: its name is `module/function`. It runs in an empty
   temporary folder. Public functions of the module are scenarios; helpers begin with an underscore.
2. Have it return a dict. `keys.py` makes keys of results: `return keys.report(rs.evaluate(...), "cranfield")`. Data
   come from `worlds.py`; import frameworks inside the function.
3. Commit it. Then `python -m tests.wall --accept module/function`, look at the file, and commit that file alone.

    def one_query():
        labels = {"q1": {"d1": 1}}
        return keys.report(rs.evaluate(labels, {"a": {"q1": ["d2", "d1"]}}, corpus_size=100, depths=[2]), "mine")

Rules
-----
- Keys are the wall's own (`cranfield/bm25/BoR@10/low`). If the API changes, change the scenario or `keys.py`, and leave
  what is stored. If a figure changes, commit what is stored alone, and say why in the message.
- Counts and texts compare exactly, figures to 1e-12, ends of intervals (keys that end in `low` or `high`) to 1e-9. NaN
  and infinities are stored as words. The codes of the warnings that a scenario raised are added as `warnings`.
- Nothing may depend on the clock, on paths, on the order of a set, or on the network.
- `texts/` holds scenarios that return a text (standard output, Markdown); they compare line by line.
- `mistakes/` declares wrong inputs: the call or command, the exception or exit code, and parts of the message. Nothing
  is stored of them; `pytest tests/test_wall.py` makes them all.
"""
