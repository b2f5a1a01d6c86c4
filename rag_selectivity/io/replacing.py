"""The one way to write files: whole or not at all, and never by replacing what is no regular file."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from rag_selectivity.errors import InputError

#: What stands in a file: a text in UTF-8, bytes, or a function that writes bytes.
Content = str | bytes | Callable[[BinaryIO], object]
#: The mode of files with users' texts that nobody asked for by name or shares: label stores and traces.
PRIVATE = 0o600
#: So many characters of a name stand in that of its partial file, since the length of names is limited.
_NAMED = 40


def write_whole(path: str | Path, content: Content) -> None:
    """Write one file, as `write_files` does."""
    write_files({path: content})


def write_files(contents: Mapping[str | Path, Content] | Mapping[Path, Content]) -> None:
    """Write files: all contents are written beside their targets, which are replaced only when all are complete.

    A symbolic link is followed. A pipe or a device (`/dev/stdout`) is written into. An error, a full disk or Ctrl-C
    leaves the old files as they were, and no other file.

    Raises
    ------
    InputError
        If a file cannot be written, or a text cannot be encoded.
    BrokenPipeError
        If nobody reads a pipe any more.
    """
    partials: dict[str | Path, str] = {}
    streams: dict[str | Path, BytesIO] = {}
    try:
        for path, content in contents.items():
            refuse_unwritable(path)
            with _named(path):
                if is_written_into(path):
                    _write(streams.setdefault(path, BytesIO()), content)
                    continue
                partials[path] = _partial(path)
                with open(partials[path], "xb") as file:
                    _write(file, content)
                    file.flush()
                    os.fsync(file.fileno())
        for path in contents:
            with _named(path):
                if path in partials:
                    os.replace(partials[path], os.path.realpath(path))
                else:
                    with open(path, "ab", buffering=0) as device:
                        device.write(streams[path].getvalue())
    finally:
        for name in partials.values():
            with suppress(OSError):
                os.unlink(name)


def refuse_unwritable(path: str | Path) -> None:
    """Raise now, before any work, the InputError that `write_files` would raise after it for this file."""
    with _named(path):
        if os.fspath(path).endswith((os.sep, os.altsep or os.sep)) or os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _status(path) is not None and not os.access(
            path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not is_written_into(path):
            _try_out(_partial(path))


def refuse_unwritable_folder(path: str | Path) -> None:
    """As `refuse_unwritable`, for files in a folder that is there or will be made."""
    place = Path(path)
    with _named(path):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        while not place.exists():
            place = place.parent
        _try_out(_partial(place / "probe"))


def is_written_into(path: str | Path) -> bool:
    """Whether a path is a pipe, a device or an open file (`/dev/stdout`): what is written there replaces no file."""
    status = _status(path)
    return status is not None and (
        not stat.S_ISREG(status.st_mode) or os.path.abspath(path).startswith(("/dev/", "/proc/"))
    )


def is_one_file(path: str | Path, other: str | Path) -> bool:
    """Whether two paths are one file, also through links, or would be."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    with suppress(OSError, ValueError):
        return os.path.samefile(path, other)
    return False


def opened_to_append(path: str | Path) -> BinaryIO:
    """A file to append to, unbuffered; a new one can be read and written by its owner alone.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with _named(path):
        return open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, PRIVATE))


def append_whole(file: BinaryIO, line: bytes) -> None:
    """Append a line to a file of `opened_to_append`, whole or not at all: a disk that fills up takes a part of it.

    Raises
    ------
    OSError
        If there is no room for it.
    """
    written = file.write(line)
    if written < len(line):
        os.ftruncate(file.fileno(), file.tell() - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def mend_of(path: str | Path, error: OSError) -> str:
    """The end of a message: what can be done about an error of the system; empty where it is not known."""
    if error.errno == errno.ENOENT:
        return f"; make the folder {os.path.dirname(os.path.realpath(path))} first"
    mend = _MENDS.get(error.errno or 0)
    return "" if mend is None else f"; {mend}"


_MENDS = {
    errno.EISDIR: "it is a folder: name a file",
    errno.EBADF: "no file is open there: open one in the shell, as in >results.txt, or name a file",
    errno.ENOTDIR: "a part of its path is a file: name another place",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "name a place where you may write"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there, or name another place"),
    errno.ENAMETOOLONG: "give it a shorter name",
}


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """What an error within says of the file; an error of another file that a content reads is left."""
    if not os.fspath(path):
        raise InputError("a file cannot be written under an empty name: name a file")
    try:
        if b"\0" in os.fsencode(path):
            raise ValueError
    except ValueError:
        raise InputError(f"{str(path)!r}: cannot be written (no file can have this name)") from None
    try:
        yield
    except BrokenPipeError:
        raise
    except UnicodeEncodeError as error:
        sign = error.object[error.start : error.start + 1]
        raise InputError(
            f"{path}: cannot be written: the text holds {sign!r}, half of a pair of surrogates, which UTF-8 lacks; "
            f"remove it from the id or the text that holds it"
        ) from None
    except OSError as error:
        other = error.filename is not None and os.fspath(error.filename) != os.fspath(path)
        if other and not str(error.filename).endswith(".partial"):
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror or error}){mend_of(path, error)}") from None


def _partial(path: str | Path) -> str:
    """The name of a new file beside the target, which takes its place."""
    folder, name = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{name[:_NAMED]}.{os.urandom(6).hex()}.partial")


def _try_out(partial: str) -> None:
    """Make a file for a moment, since permissions alone do not say whether that is possible."""
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    finally:
        with suppress(OSError):
            os.unlink(partial)


def _status(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _write(file: BinaryIO, content: Content) -> None:
    if isinstance(content, str):
        content = content.encode()
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)
