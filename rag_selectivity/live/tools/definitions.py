"""A tool as a model reads it, a model's call of one, and whether its arguments fit the schema."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rag_selectivity.errors import InputError, needing
from rag_selectivity.live.retrieval import approximate_tokens
from rag_selectivity.tables.cells import shown
from rag_selectivity.tables.files import json_value


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as a model reads it.

    Attributes
    ----------
    name : str
        By which the model calls it, and labels know it.
    description : str
    parameters : dict, optional
        The JSON schema of the arguments. Without it, arguments are not checked.
    tokens : int
        Of the whole definition.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = field(default=None, hash=False)
    tokens: int = 0

    def __post_init__(self) -> None:
        for what, kind in (("name", str), ("description", str), ("tokens", int)):
            value = getattr(self, what)
            if not isinstance(value, kind):
                raise InputError(f"the {what} of a tool must be a {kind.__name__}, got {shown(value)}")

    @classmethod
    def of(cls, definition: Mapping[str, Any], count_tokens: Callable[[str], int] = approximate_tokens) -> Self:
        """A definition in the form of a provider: OpenAI, Anthropic, Bedrock, Google, or a server's `tools/list`.

        A tool that the provider runs itself may have no name: its `title` or `type` takes the place.

        Examples
        --------
        >>> ToolDefinition.of({"name": "now", "description": "The time.", "input_schema": {"type": "object"}})
        ToolDefinition(name='now', description='The time.', parameters={'type': 'object'}, tokens=20)
        """
        within = (definition.get(key) for key in ("function", "toolSpec"))
        inner = next((each for each in within if isinstance(each, Mapping)), definition)
        schemas = (inner.get(key) for key in ("parameters", "input_schema", "inputSchema"))
        schema = next((each for each in schemas if isinstance(each, Mapping)), None)
        if schema is not None and isinstance(schema.get("json"), Mapping):
            schema = schema["json"]
        return cls(
            str(inner.get("name") or definition.get("title") or definition.get("type") or "unnamed"),
            str(inner.get("description") or ""),
            schema,
            count_tokens(json.dumps(definition, ensure_ascii=False, default=str)),
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool.

    Attributes
    ----------
    name : str
    arguments : dict or str, optional
        The arguments, or the JSON text that the model wrote. They are checked and not kept. Without them, nothing is
        checked.
    """

    name: str
    arguments: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"called must be a list of names or ToolCalls, got one called {shown(self.name)}")


#: Names that a model makes up must not fill the memory.
_LONGEST_NAME = 60
#: The kind of a misfit, by the keyword of the schema; any other is one of the value. None is a schema that is false.
_KINDS = {
    "type": "type",
    "required": "missing",
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", None), "unknown"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), "length"),
}


def misfit(arguments: Any, schema: Mapping[str, Any]) -> str | None:
    """Why arguments do not fit the JSON schema of a tool; None if they fit, or if the schema is none.

    Other than in JSON schema, an argument without a name in the schema does not fit, unless the schema allows such
    arguments explicitly. A reference to another document counts as met: nothing is fetched.

    Parameters
    ----------
    arguments : dict or str
        The arguments, or the JSON text that the model wrote.
    schema : dict

    Returns
    -------
    str or None
        The kind of the first misfit with the path of the argument, never a value.

    Raises
    ------
    MissingExtraError
        If the package jsonschema is not installed.

    Examples
    --------
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> misfit({"city": "Rome"}, schema)
    >>> misfit({}, schema), misfit({"city": 3}, schema), misfit('{"city": "Ro', schema)
    ('missing: city', 'type: city', 'no JSON object')
    >>> misfit({"city": "Rome", "town": "Rome"}, schema)
    'unknown: town'
    """
    with needing("jsonschema", "mcp", "the check of tool arguments"):
        from jsonschema import Draft202012Validator
        from referencing import Registry
    try:
        given = json_value(arguments if isinstance(arguments, str) else json.dumps(arguments, default=str))
    except (TypeError, ValueError, RecursionError):
        return "no JSON object"
    if not isinstance(given, dict):
        return "no JSON object"
    try:
        known = _plain(schema)
        if any(key in known for key in ("properties", "$ref", "allOf")):
            known = {"unevaluatedProperties": False, **known}
        error = next(Draft202012Validator(known, registry=Registry()).iter_errors(given), None)
    except Exception:
        # A tool's schema may be none, or refer to itself without an end: it says nothing then.
        return None
    while error is not None and error.context:
        error = error.context[0]
    if error is None:
        return None
    kind, path = _KINDS.get(error.validator, "value"), list(error.absolute_path)
    if kind == "missing":
        path.append(_named(error.validator_value, error.message))
    elif kind == "unknown" and error.validator is not None:
        path.append(_named(error.instance, error.message))
    names = ("[]" if isinstance(each, int) else f".{each[:_LONGEST_NAME]}" for each in path)
    return f"{kind}: {''.join(names).removeprefix('.') or 'arguments'}"


def _named(names: Iterable[str], message: str) -> str:
    """The one of the names that a message is about."""
    return next((name for name in names if repr(name) in message), "")


def _plain(schema: Any) -> Any:
    """A schema in JSON's own types, with Google's ways to write a type: in capitals, and as nullable."""
    if isinstance(schema, (list, tuple)):
        return list(map(_plain, schema))
    if not isinstance(schema, Mapping):
        return schema
    plain = {key: value if key in ("enum", "const") else _plain(value) for key, value in schema.items()}
    types = plain.get("type")
    if isinstance(types, str):
        types = [types]
    if isinstance(types, list) and all(isinstance(each, str) for each in types):
        plain["type"] = [each.lower() for each in types] + ["null"] * bool(plain.get("nullable"))
    return plain
