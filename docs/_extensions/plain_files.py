"""`llms.txt`: an index of all pages with a sentence each; `llms-full.txt`: their whole text."""
from __future__ import annotations
from typing import Any
def setup(app: Any) -> dict[str, Any]:
    return {"parallel_read_safe": True}
