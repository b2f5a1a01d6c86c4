"""A report becomes one HTML file with plots."""

import rag_selectivity as rs

report = rs.evaluate({"q": {"d": 1}}, {"r": {"q": ["d", "e"]}}, corpus_size=100, depths=[1, 2])
assert "<svg" in report.to_html()
