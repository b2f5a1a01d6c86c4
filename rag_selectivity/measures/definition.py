"""The definition of a measure as text."""

from __future__ import annotations

import inspect

from rag_selectivity.measures.base import Measure, plain_text

#: What a larger figure says, by `Measure.higher_is_better`.
DIRECTION = {True: "Higher is better.", False: "Lower is better.", None: "A property of corpus, labels and K."}


def summary(measure: type[Measure]) -> str:
    """The first line of a measure's definition."""
    return (inspect.getdoc(measure) or "").split("\n", 1)[0]


def explain(measure: Measure) -> str:
    """A measure's definition with its worked example, its direction and its parameters as text."""
    cls = type(measure)
    parts = [f"{cls.name}: {inspect.getdoc(cls)}", DIRECTION[cls.higher_is_better]]
    lines = [
        f"  {item.name}={'scale' if item.default is None else plain_text(item.default)}: {item.metadata['doc']}"
        for item in cls.parameters()
    ]
    if lines:
        parts.append("Parameters and defaults\n" + "\n".join(lines))
    return "\n\n".join(parts)
