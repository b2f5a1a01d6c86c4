"""Leases: which labels a process is asking a judge for, so that another process does not ask for them too."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from rag_selectivity.grading.store.problems import StoreConnection
from rag_selectivity.grading.store.records import Key
from rag_selectivity.grading.store.schema import transaction

_OF_WANTED = (
    "l.settings = w.settings AND l.query_hash = w.query_hash AND l.passage_hash = w.passage_hash"
    " AND l.sample = w.sample"
)


def new_owner() -> str:
    """A name for this process: its machine, its number, and the time."""
    return f"{_machine()}:{os.getpid()}:{time.time_ns()}"


def take_leases(connection: StoreConnection, owner: str, keys: Sequence[Key], seconds: float) -> set[Key]:
    """Reserve labels for an owner; those that the result leaves out belong to another owner or exist.

    It looks at these keys alone, so that its time does not depend on how many leases and labels there are.
    """
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS wanted (settings INTEGER, query_hash BLOB, passage_hash BLOB, sample INTEGER)"
    )
    with transaction(connection):
        connection.execute("DELETE FROM wanted")
        connection.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?)", keys)
        # Another process may have written a label since the gaps were listed.
        connection.execute(
            f"DELETE FROM wanted AS w WHERE EXISTS (SELECT 1 FROM labels l WHERE {_OF_WANTED} AND l.grade IS NOT NULL)"
        )
        others = connection.execute(
            f"SELECT DISTINCT l.owner FROM wanted w CROSS JOIN leases l ON {_OF_WANTED} WHERE l.owner != ?", (owner,)
        )
        free = [owner, *(name for (name,) in others.fetchall() if is_dead(name))]
        now = time.time()
        connection.execute(
            "INSERT INTO leases SELECT settings, query_hash, passage_hash, sample, ?, ? FROM wanted WHERE true"
            " ON CONFLICT DO UPDATE SET owner = excluded.owner, expires = excluded.expires"
            f" WHERE leases.expires < ? OR leases.owner IN ({', '.join('?' * len(free))})",
            (owner, now + seconds, now, *free),
        )
        held = connection.execute(
            "SELECT w.settings, w.query_hash, w.passage_hash, w.sample FROM wanted w CROSS JOIN leases l"
            f" ON {_OF_WANTED} WHERE l.owner = ?",
            (owner,),
        )
        return {tuple(row) for row in held.fetchall()}


def end_leases(connection: StoreConnection, owner: str) -> None:
    """Delete the leases of an owner, and those that have run out."""
    connection.execute("DELETE FROM leases WHERE owner = ? OR expires < ?", (owner, time.time()))


def is_dead(owner: str) -> bool:
    """Whether the owner of a lease was a process of this machine that has ended; never known on Windows."""
    machine, _, rest = owner.partition(":")
    # On Windows signal 0 is Ctrl-C: asking would interrupt the process. Its lease runs out by itself.
    if machine != _machine() or sys.platform == "win32":
        return False
    try:
        os.kill(int(rest.partition(":")[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _machine() -> str:
    """The name of this machine, and on Linux its namespace of processes: containers can share a name and a folder."""
    namespace = ""
    with suppress(OSError):
        namespace = "/" + os.readlink("/proc/self/ns/pid").strip("pid:[]")
    return socket.gethostname().replace(":", "_") + namespace
