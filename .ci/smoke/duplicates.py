"""Passages with nearly the same text are found, and count once."""

import rag_selectivity as rs
from rag_selectivity.io.groups import near_duplicates

texts = {"a": "one two three four five six", "b": "One two three four five six!", "c": "something else"}
groups = near_duplicates(texts)
assert groups == {"a": "a", "b": "a"}, groups
labels = {"q": {"a": 5, "b": 5, "c": 5}}
report = rs.evaluate(
    labels, {"r": {"q": ["a", "b"]}}, scale="utility", measures=["RA-nWG(distinct=true)@2"], groups=groups
)
assert report["RA-nWG(distinct=true)@2"].value == 0.5
