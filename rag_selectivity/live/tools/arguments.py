"""Whether the arguments of a tool call fit the JSON schema that the tool was offered with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rag_selectivity.tables.files import json_value

#: Schemas that refer to themselves, and names that a model makes up, must not fill the memory.
_DEEPEST, _LONGEST_NAME = 40, 60

_OF_TYPE = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


def misfit(arguments: Any, schema: Mapping[str, Any]) -> str | None:
    """Why arguments do not fit the JSON schema of a tool; None if they fit.

    Checked are types, required and unknown arguments, values (`enum`, `const`), bounds of numbers and lengths, items,
    nested objects, `anyOf`, `oneOf`, `allOf` and references within the schema. Every other keyword (`pattern`,
    `format`, …) counts as met. Other than in JSON schema, an argument without a name in the schema does not fit, unless
    the schema allows such arguments explicitly.

    Parameters
    ----------
    arguments : dict or str
        The arguments, or the JSON text that the model wrote.
    schema : dict

    Returns
    -------
    str or None
        The kind of the first misfit with the path of the argument, never a value.

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> misfit({"city": "Rome"}, schema)
    >>> misfit({}, schema), misfit({"city": 3}, schema), misfit('{"city": "Ro', schema)
    ('missing: city', 'type: city', 'no JSON object')
    >>> misfit({"city": "Rome", "town": "Rome"}, schema)
    'unknown: town'
    """
    if isinstance(arguments, str):
        try:
            arguments = json_value(arguments)
        except ValueError:
            return "no JSON object"
    if not isinstance(arguments, Mapping):
        return "no JSON object"
    if not isinstance(schema, Mapping):
        return None
    root = _resolved(schema, schema)
    names = root.get("properties")
    if isinstance(names, Mapping) and not root.get("additionalProperties") and not root.get("patternProperties"):
        for name in arguments:
            if name not in names:
                return f"unknown: {str(name)[:_LONGEST_NAME]}"
    return _misfit(arguments, schema, schema, "", 0)


def _misfit(value: Any, schema: Any, root: Mapping[str, Any], path: str, depth: int) -> str | None:
    if schema is False:
        return f"unknown: {path}"
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "$ref" in schema:
        problem = _misfit(value, _target(schema["$ref"], root), root, path, depth + 1)
        if problem is not None:
            return problem
    checks = (_of_type(value, schema), _of_values(value, schema), _of_size(value, schema))
    kind = next((kind for kind in checks if kind is not None), None)
    if kind is not None:
        return f"{kind}: {path or 'arguments'}"
    return _of_alternatives(value, schema, root, path, depth) or _of_parts(value, schema, root, path, depth)


def _of_type(value: Any, schema: Mapping[str, Any]) -> str | None:
    types = schema.get("type")
    # Google writes types in capitals.
    named = [str(each).lower() for each in ([types] if isinstance(types, str) else _list(types))]
    if schema.get("nullable"):
        named.append("null")
    known = [each for each in named if each in _OF_TYPE]
    fits = len(known) < len(named) or not named or any(_OF_TYPE[each](value) for each in known)
    return None if fits else "type"


def _of_values(value: Any, schema: Mapping[str, Any]) -> str | None:
    allowed = schema.get("enum")
    if isinstance(allowed, list | tuple) and not any(_same(value, each) for each in allowed):
        return "value"
    return "value" if "const" in schema and not _same(value, schema["const"]) else None


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    try:
        return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
    except (TypeError, ValueError):
        # An array, which no JSON holds.
        return False


def _list(value: Any) -> Sequence[Any]:
    """A list of a schema; a schema that has something else there says nothing."""
    return value if isinstance(value, list | tuple) else ()


def _bound(schema: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    """A number of a schema; a schema that has something else there says nothing."""
    found = schema.get(name)
    return found if _OF_TYPE["number"](found) else otherwise


def _of_size(value: Any, schema: Mapping[str, Any]) -> str | None:
    if _OF_TYPE["number"](value):
        bounds = (
            value < _bound(schema, "minimum", value),
            value > _bound(schema, "maximum", value),
            value <= _bound(schema, "exclusiveMinimum", -math.inf),
            value >= _bound(schema, "exclusiveMaximum", math.inf),
        )
        return "value" if any(bounds) else None
    for kind, least, most in (("string", "minLength", "maxLength"), ("array", "minItems", "maxItems")):
        if _OF_TYPE[kind](value) and not _bound(schema, least, 0) <= len(value) <= _bound(schema, most, len(value)):
            return "length"
    return None


def _of_alternatives(
    value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> str | None:
    for each in _list(schema.get("allOf")):
        problem = _misfit(value, each, root, path, depth + 1)
        if problem is not None:
            return problem
    for key in ("anyOf", "oneOf"):
        choices = _list(schema.get(key))
        problems = [_misfit(value, each, root, path, depth + 1) for each in choices]
        fitting = problems.count(None)
        if choices and (not fitting or (key == "oneOf" and fitting > 1)):
            return problems[0] or f"value: {path or 'arguments'}"
    return None


def _of_parts(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int) -> str | None:
    if isinstance(value, Mapping):
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        for name in _list(schema.get("required")):
            if isinstance(name, str) and name not in value:
                return f"missing: {_joined(path, name)}"
        others = schema.get("additionalProperties", True) if not schema.get("patternProperties") else True
        for name, part in value.items():
            problem = _misfit(part, properties.get(name, others), root, _joined(path, name), depth + 1)
            if problem is not None:
                return problem
    elif isinstance(value, list | tuple):
        for part in value:
            problem = _misfit(part, schema.get("items", True), root, f"{path}[]", depth + 1)
            if problem is not None:
                return problem
    return None


def _joined(path: str, name: object) -> str:
    name = str(name)[:_LONGEST_NAME]
    return f"{path}.{name}" if path else name


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        target = _target(schema["$ref"], root)
        if not isinstance(target, Mapping):
            break
        schema = target
    return schema


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference within the schema names; True, which everything fits, for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    found: Any = root
    for part in reference.lstrip("#").strip("/").split("/"):
        if part:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                return True
            found = found[name]
    return found
