"""Whether processes can share a write-ahead log in a folder: they lock parts of a file, and share memory."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

#: File systems of other computers: their processes share no memory with those here.
_OF_A_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ncpfs", "ceph", "glusterfs", "lustre")
_MOUNTS = Path("/proc/self/mountinfo")
#: How it writes spaces, tabs, line ends and backslashes.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def may_use_log(path: Path) -> bool:
    """Whether the file system of a store has what SQLite's write-ahead log needs.

    Without it the store is written with a rollback journal: slower, and readers and a writer wait for each other.
    """
    folder = Path(os.path.realpath(path)).parent
    try:
        return _has_locks(folder.stat().st_dev, folder)
    except OSError:
        return True


@lru_cache(maxsize=64)
def _has_locks(device: int, folder: Path) -> bool:
    kind = file_system_of(folder)
    if kind in _OF_A_NETWORK or kind.startswith("fuse.sshfs"):
        return False
    return can_lock(folder)


def file_system_of(folder: Path) -> str:
    """The type of the file system of a folder, such as ext4; an empty text where the system does not say it."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n").split("\n")
    except OSError:
        return ""
    place, best = os.path.realpath(folder), ("", "")
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split()[4])
        if (place == mount or place.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best[0]):
            best = mount, after.split()[0]
    return best[1]


def can_lock(folder: Path) -> bool:
    """Whether a file of a folder can be locked; a folder that cannot be written is not asked."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
    except OSError:
        return True
    return True
