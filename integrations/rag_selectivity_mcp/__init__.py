"""rag-selectivity for MCP: the tools that servers list as one catalogue, and what sessions call of them.

Needs the extra `rag-selectivity[mcp]`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rag_selectivity.errors import MissingExtraError

try:
    from mcp import Client, ClientSession
    from mcp.types import PaginatedRequestParams, Tool
except ImportError as error:
    raise MissingExtraError("mcp>=2", "mcp", "rag_selectivity_mcp") from error

from rag_selectivity import InputError
from rag_selectivity.live.tools import ToolCall, ToolDefinition, ToolWatcher

__all__ = ["ToolSelectivity", "WatchedSession"]

#: A server whose list of tools never ends must not stop the application.
_MOST_PAGES = 1000


#: The model call that is open here: who watches it, and the calls of tools that it has made.
_open: ContextVar[tuple[ToolSelectivity, list[ToolCall]] | None] = ContextVar("rag_selectivity_mcp", default=None)


class ToolSelectivity(ToolWatcher):
    """Watches the tools that servers list, the calls of them in sessions, and how these end.

    Parameters
    ----------
    labels, catalogue, relevant, **options
        As in `rag_selectivity.ToolMonitor`. The tools that the servers list are added to the catalogue.
    count_tokens : callable, optional
        Text → tokens of a definition as JSON; default: four characters a token.

    A fault in here never reaches the application: it is logged, and counted in `faults`.
    """

    def __init__(self, labels: Any = None, **options: Any) -> None:
        super().__init__(labels, **options)
        #: What each server lists, by its name; a session without one goes by its id, and its tools with it.
        self._servers: dict[str | int, dict[str, ToolDefinition]] = {}

    async def watch(self, session: Client | ClientSession, server: str = "") -> WatchedSession:
        """Read every page of the server's list of tools, and return the session with its calls recorded.

        Parameters
        ----------
        session : Client or ClientSession
            Connected.
        server : str
            Stands before the names of its tools in labels and reports, as `server/tool`. Without it, equal names of
            two servers are reported as duplicates.

        Raises
        ------
        InputError
            If the list of tools has no end.
        """
        watched = WatchedSession(session, self, server)
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await watched.page(cursor)
            tools += page.tools
            if (cursor := page.next_cursor) is None:
                # What a server lists no longer is gone.
                self._servers[server or id(session)] = {}
                if not server:
                    weakref.finalize(session, self._servers.pop, id(session), None)
                self.add(watched, tools)
                return watched
        raise InputError(f"{server or 'the server'} lists tools on more than {_MOST_PAGES:,} pages: mend its cursors")

    @contextmanager
    def model_call(self, query: str, *, shown: Sequence[str] | None = None, **options: Any) -> Iterator[None]:
        """One call of the model: the tools that are called inside, in any watched session, are what it chose.

        Parameters
        ----------
        query : str
        shown : sequence of str, optional
            Names of the tools that the model was shown. Default: all tools of the watched sessions.
        options
            `query_id` and `after_results` as in `rag_selectivity.ToolMonitor.call`.
        """
        calls: list[ToolCall] = []
        token = _open.set((self, calls))
        try:
            yield
        finally:
            with self.guard:
                _open.reset(token)
            with self.guard:
                self._record(query, calls, shown, **options)

    def add(self, session: WatchedSession, tools: Sequence[Tool]) -> None:
        """Add tools that a server listed to the catalogue."""
        with self.guard:
            listed = self._servers.setdefault(session.server or id(session.session), {})
            for tool in tools:
                wanted = {"name", "description", "input_schema"}
                definition = tool.model_dump(by_alias=True, exclude_none=True, include=wanted)
                name = session.name_of(tool.name)
                listed[name] = ToolDefinition.of({**definition, "name": name}, self.count_tokens)
            self.monitor.add(self._all())

    def called(self, call: ToolCall) -> None:
        """Record a call of a tool: with those of the model call that it is part of, or by itself."""
        with self.guard:
            watcher, calls = _open.get() or (None, [])
            if watcher is self:
                calls.append(call)
            else:
                self._record("", [call], None)

    def ran(self, name: str, *, failed: bool) -> None:
        """Record how a call of a tool ended."""
        with self.guard:
            self.monitor.ran(name, failed=failed)

    def _all(self) -> list[ToolDefinition]:
        return [tool for listed in list(self._servers.values()) for tool in listed.values()]

    def _record(self, query: str, calls: list[ToolCall], shown: Sequence[str] | None, **options: Any) -> None:
        tools = self._all()
        if shown is not None:
            known = {tool.name: tool for tool in tools}
            tools = [known.get(name, ToolDefinition(name)) for name in shown]
        self.monitor.call(query, tools, calls, **options)


class WatchedSession:
    """A session whose calls of tools are recorded; everything else is the session's own."""

    def __init__(self, session: Client | ClientSession, tools: ToolSelectivity, server: str = "") -> None:
        self.session, self._tools, self.server = session, tools, server

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def name_of(self, tool: str) -> str:
        """A tool's name in labels and reports."""
        return f"{self.server}/{tool}" if self.server else tool

    async def page(self, cursor: str | None) -> Any:
        """A page of the server's list of tools."""
        if isinstance(self.session, ClientSession):
            return await self.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        return await self.session.list_tools(cursor=cursor)

    async def list_tools(self, **options: Any) -> Any:
        """As the session's own; the tools are added to the catalogue."""
        page = await self.session.list_tools(**options)
        self._tools.add(self, page.tools)
        return page

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *others: Any, **options: Any) -> Any:
        """As the session's own. An error, and a result that is marked as an error, count as a failed run."""
        known = self.name_of(name)
        self._tools.called(ToolCall(known, arguments or {}))
        try:
            result = await self.session.call_tool(name, arguments, *others, **options)
        except Exception:
            self._tools.ran(known, failed=True)
            raise
        self._tools.ran(known, failed=bool(getattr(result, "is_error", False)))
        return result
