"""Tool selection as retrieval: of N tools in a catalogue K are shown to a model, and R would have served.

A model reads the definition of every tool that it is shown. Knows no framework.
"""

from rag_selectivity.live.tools.definitions import ToolCall, ToolDefinition, misfit
from rag_selectivity.live.tools.monitor import ToolMonitor, ToolWatcher
from rag_selectivity.live.tools.report import ToolReport, similar_tools
from rag_selectivity.live.tools.words import tool_blocks
from rag_selectivity.render.blocks import SHOWN

__all__ = ["ToolCall", "ToolDefinition", "ToolMonitor", "ToolReport", "ToolWatcher", "misfit", "similar_tools"]

SHOWN[ToolReport] = "What the tools shown are worth", tool_blocks
