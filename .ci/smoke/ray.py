"""Ray's datasets are there, and what measures and grades them."""

import ray.data

import rag_selectivity as rs

assert ray.data.from_items
assert rs.ray.evaluate
assert rs.ray.grade
