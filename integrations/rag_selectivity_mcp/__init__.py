"""rag-selectivity for MCP: the tools that servers list, and what a session calls of them.

Needs the extra `rag-selectivity[mcp]`.
"""

from __future__ import annotations

from rag_selectivity.errors import MissingExtraError

try:
    import mcp
except ImportError as error:
    raise MissingExtraError("mcp>=2", "mcp", "rag_selectivity_mcp") from error
if not hasattr(mcp, "Client"):
    raise MissingExtraError("mcp>=2", "mcp", "rag_selectivity_mcp")

from rag_selectivity_mcp.watching import ToolSelectivity, WatchedSession

__all__ = ["ToolSelectivity", "WatchedSession"]
