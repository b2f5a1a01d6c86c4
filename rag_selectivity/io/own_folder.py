"""A temporary folder that the next process removes if its own is killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from rag_selectivity.io.replacing import lock_file

_PREFIX, _SUFFIX = "rag-selectivity-", ".temporary"
_NAME = re.compile(rf"{_PREFIX}\w+{re.escape(_SUFFIX)}")


class OwnFolder(tempfile.TemporaryDirectory[str]):
    """A new folder in `parent` (None: the system's for temporary files), which is removed afterwards.

    It is locked while its process lives. Making one removes those in the same place whose processes were killed, where
    the system has locks of folders.
    """

    def __init__(self, parent: str | Path | None, *, ignore_cleanup_errors: bool = False) -> None:
        _remove_left_behind(tempfile.gettempdir() if parent is None else parent)
        while True:
            super().__init__(_SUFFIX, _PREFIX, parent, ignore_cleanup_errors=ignore_cleanup_errors)
            descriptor = _opened(self.name)
            self._unlock = weakref.finalize(self, _close, descriptor)
            if descriptor is not None:
                lock_file(descriptor, wait=True)
            if os.path.isdir(self.name):
                return
            # Another process took it for one that was left behind, before it was locked.
            self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder."""
        super().cleanup()
        self._unlock()


def _opened(folder: str) -> int | None:
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
    with suppress(OSError):
        return os.open(folder, flags)
    return None


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)


def _remove_left_behind(parent: str | Path) -> None:
    if not hasattr(os, "geteuid"):
        return
    mine: list[str] = []
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                        mine.append(entry.path)
    for folder in mine:
        descriptor = _opened(folder)
        try:
            if descriptor is not None and lock_file(descriptor):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            _close(descriptor)
