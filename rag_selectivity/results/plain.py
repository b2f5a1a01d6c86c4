"""Results as plain data and as rows: both from their fields, by which pydantic reads them back."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, dataclass_transform

import numpy as np

from rag_selectivity.measures.base import Measure, parse_measure


class _NullIsNaN:
    """How pydantic reads a number: where it is null it is NaN."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        number = core_schema.nullable_schema(handler(source))
        return core_schema.no_info_after_validator_function(lambda value: math.nan if value is None else value, number)


class _ByName:
    """How pydantic reads a measure: by its name."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(parse_measure, core_schema.str_schema())


#: A measure, of which the name is written.
Named = Annotated[Measure, _ByName]
#: A number that may be undefined (NaN); and one that also may not be there (None).
Number = Annotated[float, _NullIsNaN]
Known = Annotated[float | None, _NullIsNaN]
#: The ends of an interval or a range.
Ends = tuple[Number, Number]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Plain:
    """Its subclasses are frozen dataclasses, each written as its fields, without those that its `repr` leaves out."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    #: Properties that are written beside the fields.
    also: ClassVar[tuple[str, ...]] = ()
    #: Whether a field that has its default is left out.
    sparse: ClassVar[bool] = False

    def __init_subclass__(cls, *, kw_only: bool = False, repr: bool = True) -> None:
        dataclass(frozen=True, kw_only=kw_only, repr=repr)(cls)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON; a number that is not finite is None."""
        return plain_fields(self)


def finite(value: float) -> float | None:
    """The value, or None if it is not finite (JSON has no such numbers)."""
    return float(value) if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """A value as plain data, ready for JSON; a number that is not finite is None.

    What has a `to_dict` is what that says, a measure is its name, and another dataclass its fields.
    """
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (Measure, Path)):
        return str(value)
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return value


def plain_fields(value: Any, *left_out: str) -> dict[str, Any]:
    """A dataclass as plain data, but for some of its fields."""
    sparse, also = getattr(value, "sparse", False), getattr(value, "also", ())
    own = [each.name for each in _written(value) if not (sparse and _has_default(value, each))]
    return {name: plain(getattr(value, name)) for name in (*own, *also) if name not in left_out}


def _written(value: Any) -> list[Field[Any]]:
    return [each for each in fields(value) if each.repr]


def _has_default(value: Any, each: Field[Any]) -> bool:
    own = getattr(value, each.name)
    return not own if each.default_factory is not MISSING else bool(own == each.default)


def flat(value: Any) -> dict[str, Any]:
    """A dataclass as the cells of a row, all its fields: intervals have two columns, ids and codes are a text.

    A list of further values has no cell.
    """
    row: dict[str, Any] = {}
    for each in _written(value):
        name, own = each.name, getattr(value, each.name)
        if each.type == Ends | None:
            row[f"{name}_low"], row[f"{name}_high"] = own or (math.nan, math.nan)
        elif hasattr(own, "low"):
            row |= {name: own.value, f"{name}_low": own.low, f"{name}_high": own.high}
        elif isinstance(own, tuple):
            texts: list[Any] = list(dict.fromkeys(x.code for x in own) if name.endswith("caveats") else own)
            if name.endswith("caveats") or str(each.type).startswith("tuple[str"):
                row[name] = ids_in_cell(texts)
        elif isinstance(own, Plain):
            row |= {f"{name}_{inner}": cell for inner, cell in flat(own).items()}
        else:
            row[name] = own if isinstance(own, float) else plain(own)
    return row | {name: getattr(value, name) for name in getattr(value, "also", ())}


def ids_in_cell(ids: Sequence[str]) -> str:
    """Ids as one cell of a table: with spaces between them, or a list in JSON where that would be read as other ids.

    >>> ids_in_cell(["d1", "d2"]), ids_in_cell(["a b", "d2"])
    ('d1 d2', '["a b", "d2"]')
    """
    text = " ".join(ids)
    return text if text.split() == list(ids) and not text.startswith("[") else json.dumps(list(ids), ensure_ascii=False)
