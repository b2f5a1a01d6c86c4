"""Reading measures from text: `BoR`, `BoR@10`, `BoR(rel=5, m=2)@20`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rag_selectivity.errors import InputError, did_you_mean
from rag_selectivity.measures.base import REGISTRY, Measure

#: Further names, under which other tools and papers have a measure. Reports show the measure's own name.
ALIASES = {"MAP": "AP", "MRR": "RR", "F1": "F", "HitRate": "Success", "Hit": "Success"}
ALIASES |= {"hit_rate": "Success", "precision": "P", "recall": "R"}
for _alias, _own in ALIASES.items():
    REGISTRY.add_alias(_alias, _own)
#: What a further name says of a parameter already.
_SAID = {"f1": ("beta", "alpha")}

_SHAPE = re.compile(r"\s*([^\s()@]+)\s*(?:\(([^()]*)\))?\s*(?:@\s*(\S+))?\s*")


def parse_measure(text: str | Measure) -> Measure:
    """The measure that a string names; its `str` is the canonical spelling.

    Names are case-insensitive. A typo is an InputError with the closest name. MAP, MRR, F1, precision, recall,
    HitRate, hit_rate and Hit are further names of AP, RR, F, P, R and Success.

    >>> parse_measure("bor( rel=5, m=1 )@10")
    BoR(rel=5)@10
    >>> parse_measure("MRR"), parse_measure("f1@5"), parse_measure("HitRate(m=2)@10")
    (RR, F@5, Success(m=2)@10)
    """
    if isinstance(text, Measure):
        return text
    if isinstance(text, type) and issubclass(text, Measure):
        return text()
    match = _SHAPE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InputError(f"measure {text!r} is not NAME, NAME@K or NAME(parameter=value)@K")
    return _parsed(REGISTRY.find(match[1]), text, match[1], match[2], match[3])


# A report reads the keys of its figures again and again. A class may be defined again under its name.
@lru_cache(maxsize=4096)
def _parsed(cls: type[Measure], text: str, name: str, arguments: str | None, depth: str | None) -> Measure:
    known = {item.name: item for item in cls.parameters()}
    values: dict[str, Any] = {}
    for argument in filter(None, (part.strip() for part in (arguments or "").split(","))):
        key, equals, value = (part.strip() for part in argument.partition("="))
        if not equals or key not in known:
            raise InputError(
                f"measure {text!r}: {cls.name} has no parameter {key!r}{did_you_mean(key, known)} "
                f"(it has: {', '.join(known) or 'none'})"
            )
        if key in _SAID.get(name.casefold(), ()):
            raise InputError(
                f"measure {text!r}: {name} says already that beta is 1: leave {key} out, or write {cls.name}({key}=…)"
            )
        if key in values:
            raise InputError(f"measure {text!r}: {key} is given twice")
        values[key] = known[key].metadata["kind"].parse(value, f"measure {text!r}: {key}")
    if depth is not None:
        values["at"] = cls.cutoff.parse(depth, f"measure {text!r}: the depth")
    return cls(**values)
