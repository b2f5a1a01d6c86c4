"""A tool as a model reads it, and a model's call of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_selectivity.errors import InputError
from rag_selectivity.live.retrieval import approximate_tokens
from rag_selectivity.tables.cells import shown


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
    def of(
        cls, definition: Mapping[str, Any], count_tokens: Callable[[str], int] = approximate_tokens
    ) -> ToolDefinition:
        """A definition in the form of a provider: OpenAI, Anthropic, Bedrock, Google, or a server's `tools/list`.

        A tool that the provider runs itself may have no name: its `title` or `type` takes the place.

        Examples
        --------
        >>> ToolDefinition.of({"name": "now", "description": "The time.", "input_schema": {"type": "object"}})
        ToolDefinition(name='now', description='The time.', parameters={'type': 'object'}, tokens=20)
        """
        inner = next(
            (each for key in ("function", "toolSpec") if isinstance(each := definition.get(key), Mapping)), definition
        )
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
