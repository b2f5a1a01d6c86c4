"""The directive `public`: the documentation of names that a package exports, from their docstrings.

    ```{public} rag_selectivity
    evaluate
    Report
    ```

Without names it is all that the package's `__all__` lists. A page thus names what it documents, on a code host too.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

INTEGRATIONS = Path(__file__).resolve().parents[2] / "integrations"


class Public(SphinxDirective):
    """`{public} PACKAGE`, with one name a line or none."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        module = import_module(package)
        names = [name for line in self.content for name in line.split()] or list(module.__all__)
        lines = [line for name in names for line in directive(package, name, getattr(module, name))]
        return self.parse_text_to_nodes(
            "\n".join(["```{eval-rst}", f".. py:currentmodule:: {package}", "", *lines, "```"])
        )


def directive(package: str, name: str, value: Any) -> list[str]:
    """The lines of reStructuredText that document a name."""
    if isinstance(value, ModuleType):
        return [f".. automodule:: {value.__name__}", ""]
    if inspect.isclass(value):
        return [f".. autoclass:: {package}.{name}", ""]
    kind = "autofunction" if callable(value) else "autodata"
    return [f".. {kind}:: {package}.{name}", ""]


#: A code span, which stays as it is, or a mark that reStructuredText would take for syntax.
_SPAN_OR_MARK = re.compile(r"(``.+?``|`[^`]+`)|([|*])")


def escape(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are read in terminals, too: |U| and K* mean just these characters."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = _SPAN_OR_MARK.sub(lambda found: found[1] or rf"\{found[2]}", line)


def import_everything() -> None:
    """Import all that is documented: autodoc changes pydantic's annotations, after which no model can be made."""
    for package in ("rag_selectivity", *sorted(path.name for path in INTEGRATIONS.glob("rag_selectivity_*"))):
        module = import_module(package)
        for name in module.__all__:
            getattr(module, name)


def setup(app: Any) -> dict[str, Any]:
    import_everything()
    app.add_directive("public", Public)
    app.connect("autodoc-process-docstring", escape, priority=400)
    return {"parallel_read_safe": True}
