"""The one way to write files: whole or not at all, and never by replacing what is no regular file."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from rag_selectivity.errors import InputError

#: What stands in a file: a text in UTF-8, bytes, or a function that writes bytes.
Content = str | bytes | Callable[[BinaryIO], object]
#: The mode of files with users' texts that nobody asked for by name or shares: label stores and traces.
PRIVATE = 0o600
_PUBLIC = 0o666
_PROBE = ".rag-selectivity-probe"
#: So many characters of a name stand in that of its partial file, since the length of names is limited.
_NAMED = 40
#: Folders whose files are the open files of a process.
_DESCRIPTORS = re.compile(r"/proc/(\d+)(?:/task/\d+)?/fd|/dev/fd")
_MOST_LINKS = 40


def write_whole(path: str | Path, content: Content, *, private: bool = False) -> None:
    """Write one file, as `write_files` does."""
    write_files({path: content}, private=private)


def write_files(contents: Mapping[str | Path, Content] | Mapping[Path, Content], *, private: bool = False) -> None:
    """Write files: all contents are written beside their targets, which are replaced only when all are complete.

    A reader finds the old file or the new one, whole. A symbolic link is followed, also one whose target is yet to be
    made; a file that is replaced keeps its mode and, where this process may give it, its owner. What is no regular file
    (a pipe, a terminal, `/dev/null`) is written into. An error, a full disk or Ctrl-C leaves the old files as they
    were, and no other file; what a killed process left behind is removed when its file is written again. New files that
    are `private` can be read and written by their owner alone.

    Raises
    ------
    InputError
        If a file cannot be written, or a text cannot be encoded.
    BrokenPipeError
        If nobody reads a pipe any more.
    """
    targets = [_Target.of(path, PRIVATE if private else _PUBLIC) for path in contents]
    # Twice, so that Ctrl-C at any step, in the removal too, leaves no file.
    try:
        try:
            if len(targets) == 1:
                targets[0].remove_left_behind()
            for target, content in zip(targets, contents.values(), strict=True):
                target.fill(content)
            for target in targets:
                target.finish()
            # Not before: of two files that belong together, what a killed process left may be the only other half.
            for target in targets[1:] and targets:
                target.remove_left_behind()
        finally:
            _remove(targets)
    finally:
        _remove(targets)


def refuse_unwritable(path: str | Path) -> None:
    """Raise now, before any work, the InputError that `write_files` would raise after it for this file.

    A file is made beside the target for a moment, since permissions alone do not say whether that is possible.
    """
    _try_out(_Target.of(path))


def is_written_into(path: str | Path) -> bool:
    """Whether a path is a pipe, a device or an open file (`/dev/stdout`): what is written there replaces no file."""
    return _Target.of(path).partial is None


def is_one_file(path: str | Path, other: str | Path) -> bool:
    """Whether two paths are one file, also through links, or would be."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    with suppress(OSError, ValueError):
        return os.path.samefile(path, other)
    return False


def _try_out(target: _Target) -> None:
    try:
        try:
            target.try_out()
        finally:
            _remove([target])
    finally:
        _remove([target])


def refuse_unwritable_folder(path: str | Path) -> None:
    """As `refuse_unwritable`, for files in a folder that is there or will be made."""
    place = Path(path)
    with _named(path):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        while not place.exists():
            place = place.parent
    # A name that no file has: one that is there would be tried out instead. It is always the same, so that the next
    # process finds what one that was killed left behind.
    target = _Target.of(place / _PROBE)
    target.path = path
    target.remove_left_behind()
    _try_out(target)


def opened_to_append(path: str | Path) -> BinaryIO:
    """A file to append to, unbuffered; a new one can be read and written by its owner alone.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    _refuse_impossible_name(path)
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
        try:
            written += file.write(line[written:])
        finally:
            if written < len(line):
                _take_back(file, written)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _take_back(file: BinaryIO, size: int) -> None:
    """Remove the last bytes that were appended, unless another process has appended since."""
    with suppress(OSError):
        end = file.tell()
        if os.fstat(file.fileno()).st_size == end:
            os.ftruncate(file.fileno(), end - size)


@dataclass(slots=True)
class _Target:
    """A file to write.

    Attributes
    ----------
    path : str or Path
        As it was given, for messages.
    file : str
        Where it is, with links followed.
    partial : str or None
        The file beside it that takes its place; None for what is written into.
    status : stat_result or None
        Of the file that is there.
    mode : int
        Of a new file.
    pending : bytes
        What is to be written into it.
    lock : int or None
        A descriptor that keeps the partial file locked until it is in its place; Windows moves no open file.
    """

    path: str | Path
    file: str
    partial: str | None
    status: os.stat_result | None
    mode: int = _PUBLIC
    pending: BytesIO | None = None
    lock: int | None = None

    @classmethod
    def of(cls, path: str | Path, mode: int = _PUBLIC) -> _Target:
        _refuse_impossible_name(path)
        with _named(path):
            status = _status(path)
            names_folder = os.fspath(path).endswith((os.sep, os.altsep or os.sep))
            if names_folder or (status is not None and stat.S_ISDIR(status.st_mode)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if status is None and _descriptor(path) is not None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            if status is not None and (not stat.S_ISREG(status.st_mode) or _descriptor(path) is not None):
                return cls(path, os.fspath(path), None, status)
            file = os.path.realpath(path)
            folder, name = os.path.split(file)
            partial = f"{_start(name)}{os.urandom(6).hex()}.partial"
            return cls(path, file, os.path.join(folder, partial), status, mode)

    def fill(self, content: Content) -> None:
        """Write the content beside the target, or hold it for what is written into."""
        with _named(self.path, self.file, self.partial):
            if self.partial is None:
                self.pending = BytesIO()
                _write(self.pending, content)
                return
            self._refuse_read_only()
            with self._opened_and_locked(self.partial) as file:
                if os.name != "nt":
                    self.lock = os.dup(file.fileno())
                _write(file, content)
                file.flush()
                _sync(file.fileno())
                if self.status is not None:
                    _give_mode(file.fileno(), self.status)

    def finish(self) -> None:
        """Put the content in its place."""
        with _named(self.path):
            if self.partial is not None:
                _put_in_place(self.partial, self.file)
            elif self.pending is not None:
                # Let go at once: an error keeps what its frames hold, and Python before 3.13 can crash when it collects
                # a BytesIO together with its buffer.
                with self.pending.getbuffer() as content:
                    _write_into(self.file, content)

    def remove_left_behind(self) -> None:
        """Remove the partial files of processes that were killed."""
        if self.partial is not None:
            _remove_left_behind(self.file)

    def try_out(self) -> None:
        """Make and leave an empty file beside the target; look at the permissions of what is written into."""
        with _named(self.path):
            self._refuse_read_only()
            if self.partial is not None:
                self._opened(self.partial).close()

    def _refuse_read_only(self) -> None:
        if self.status is not None and not os.access(
            self.path, os.W_OK, effective_ids=os.access in os.supports_effective_ids
        ):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def _opened_and_locked(self, partial: str) -> BinaryIO:
        while True:
            file = self._opened(partial)
            lock_file(file, wait=True)
            if os.fstat(file.fileno()).st_nlink or os.path.exists(partial):
                return file
            # Another process took it for one that was left behind, before it was locked.
            file.close()

    def _opened(self, partial: str) -> BinaryIO:
        # What takes the place of a file may be as private as that file.
        mode = self.mode if self.status is None else PRIVATE
        return open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode))


@contextmanager
def _named(path: str | Path, *others: str | None) -> Iterator[None]:
    """What an error within says of the file, whose other names are given too; an error of another file is left."""
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
        if others and error.filename is not None and os.fspath(error.filename) not in (os.fspath(path), *others):
            # A content that reads another file.
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror or error}){mend_of(path, error)}") from None


def mend_of(path: str | Path, error: OSError) -> str:
    """The end of a message: what can be done about an error of the system; empty where it is not known."""
    if error.errno == errno.ENOENT:
        return f"; make the folder {os.path.dirname(os.path.realpath(path))} first"
    mend = _MENDS.get(error.errno or 0)
    return "" if mend is None else f"; {mend}"


_MENDS = {
    errno.EISDIR: "it is a folder: name a file",
    errno.EBADF: "no file is open there: open one in the shell, as in >results.txt or 3>results.txt, or name a file",
    errno.ENOTDIR: "a part of its path is a file: name another place",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "name a place where you may write"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there, or name another place"),
    errno.EFBIG: "the system limits the size of files: raise the limit (ulimit -f), or name another place",
    errno.ENAMETOOLONG: "give it a shorter name",
}


def _refuse_impossible_name(path: str | Path) -> None:
    if not os.fspath(path):
        raise InputError("a file cannot be written under an empty name: name a file")
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InputError(f"{str(path)!r}: cannot be written (no file can have this name)")


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


def _sync(descriptor: int) -> None:
    """Have the disk take everything: it may show only now that it is full, and a power failure cuts nothing off."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _give_mode(descriptor: int, status: os.stat_result) -> None:
    """The mode and the owner of the file that is replaced; a group that cannot be given has no rights."""
    mode = stat.S_IMODE(status.st_mode)
    if not hasattr(os, "fchown"):
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except OSError:
            if mine.st_gid != status.st_gid:
                mode &= ~stat.S_IRWXG
    # Some disks have no modes.
    with suppress(OSError):
        os.fchmod(descriptor, mode)


def _put_in_place(partial: str, file: str) -> None:
    try:
        os.replace(partial, file)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # A file that is mounted by itself, as into a container, cannot be replaced.
        with open(partial, "rb") as made, open(file, "wb") as into:
            shutil.copyfileobj(made, into)


def _write_into(file: str, content: memoryview) -> None:
    """Write into what is no file of its own: a pipe, a device, or an open file of this process (`/dev/stdout`)."""
    number = _descriptor(file)
    # Opened anew, a file to which the shell redirects would be overwritten from its beginning.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND) if number is None else os.dup(number)
    try:
        written = 0
        while written < len(content):
            with content[written:] as rest:
                written += os.write(descriptor, rest)
    finally:
        os.close(descriptor)


def _descriptor(path: str | Path) -> int | None:
    """The number of the open file of this process that a path stands for, such as 1 for `/dev/stdout`; else None."""
    at = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(at)
        found = _DESCRIPTORS.fullmatch(os.path.realpath(folder))
        if found is not None and name.isdecimal():
            return int(name) if found[1] in (None, str(os.getpid())) else None
        if not os.path.islink(at):
            return None
        at = os.path.join(folder, os.readlink(at))
    return None


def _remove(targets: Sequence[_Target]) -> None:
    for target in targets:
        if target.partial is not None:
            with suppress(OSError):
                os.unlink(target.partial)
        lock, target.lock = target.lock, None
        if lock is not None:
            with suppress(OSError):
                os.close(lock)


# -- what killed processes left behind -----------------------------------------------------------------


def _start(name: str) -> str:
    """How the partial files of a file begin."""
    return f".{name[:_NAMED]}."


def lock_file(file: Any, *, wait: bool = False) -> bool:
    """Lock a file as long as it is open, so that others know that its process lives; whether it was free."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def left_behind(file: str | Path) -> list[str]:
    """The partial files of this file that are there, of processes that were killed or that write now."""
    folder, name = os.path.split(os.path.realpath(file))
    return sorted(_files(folder, re.compile(re.escape(_start(name)) + r"[0-9a-f]{12}\.partial")))


def _remove_left_behind(file: str) -> None:
    """Remove the partial files of this file whose processes were killed."""
    for left in left_behind(file):
        with suppress(OSError), open(left, "rb", opener=_without_links) as found:
            if lock_file(found):
                os.unlink(left)


def _files(folder: str, pattern: re.Pattern[str]) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if pattern.fullmatch(entry.name)]
    except OSError:
        return
    for entry in found:
        with suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                yield entry.path


def _without_links(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))
