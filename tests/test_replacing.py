"""The one writer: what becomes of a file, whatever it is and whatever interrupts, and who may read it."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from typer.testing import CliRunner

import rag_selectivity as rs
from rag_selectivity.cli.app import app
from rag_selectivity.grading.store import Store
from rag_selectivity.live.monitor import Monitor
from rag_selectivity.live.retrieval import Retrieval
from rag_selectivity.live.trace import append_whole, opened_to_append
from rag_selectivity.tables.writing import refuse_unwritable, write_files, write_rows, write_whole

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="modes, pipes and signals of POSIX"), pytest.mark.inside]
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
ROWS = [{"query_id": "q", "passage_id": f"p{i}", "grade": 1} for i in range(50)]
#: Everything that writes a file, each given a path.
WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_whole(path, "new\n" * 50),
    "csv": lambda path: write_rows(path.with_suffix(".csv"), ROWS),
    "jsonl": lambda path: write_rows(path.with_suffix(".jsonl"), ROWS),
    "parquet": lambda path: write_rows(path.with_suffix(".parquet"), ROWS),
    "two files": lambda path: write_files({path: "new\n" * 50, path.with_suffix(".side"): "new\n" * 50}),
}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def content(folder: Path) -> dict[str, bytes]:
    """{file: content}, of whatever is there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- what is there already -----------------------------------------------------------------------------


def test_a_link_is_followed(tmp_path) -> None:
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "target.txt", tmp_path / "link.txt", tmp_path / "second.txt"
    target.write_text("old")
    link.symlink_to("there/target.txt")
    second.symlink_to(link)
    write_whole(second, "new")
    assert (second.is_symlink(), link.is_symlink(), target.read_text()) == (True, True, "new")
    target.unlink()
    write_whole(link, "made")
    assert (link.is_symlink(), target.read_text()) == (True, "made")
    round_ = tmp_path / "round"
    round_.symlink_to(round_)
    with pytest.raises(rs.InputError, match="round: cannot be written"):
        write_whole(round_, "x")


@pytest.mark.parametrize(("mask", "bits"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_user_set(tmp_path, mask, bits) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "new.txt", "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new.txt") == bits


def test_a_pipe_is_written_into(tmp_path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    refuse_unwritable(pipe)
    write_rows(pipe, ROWS)
    reader.join(10)
    write_rows(tmp_path / "file.csv", ROWS)
    assert read == [(tmp_path / "file.csv").read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_into() -> None:
    write_whole("/dev/null", "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    refuse_unwritable("/dev/full")
    with pytest.raises(rs.InputError, match=r"/dev/full: cannot be written \(No space left on device\); free"):
        write_whole("/dev/full", "x")


def test_where_a_shell_redirects_to_is_written_into(tmp_path) -> None:
    names = {"/dev/stdout": "a", "/dev/fd/1": "b", "/proc/self/fd/1": "c"}
    code = f"from rag_selectivity.tables.writing import write_whole; [write_whole(*each) for each in {names}.items()]"
    with (tmp_path / "shown.txt").open("wb") as file:
        file.write(b"before ")
        file.flush()
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        file.seek(0, os.SEEK_END)
        file.write(b" after")
    assert content(tmp_path) == {"shown.txt": b"before abc after"}
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"abc"


def test_nobody_reads_a_pipe_any_more(tmp_path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_whole(f"/dev/fd/{writing}", "x" * 100_000)
    os.close(writing)


# -- what cannot be written ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere/x", "(No such file or directory); make the folder {folder}/nowhere first"),
        ("folder", "(Is a directory); name another file"),
        ("file/x", "(Not a directory); {folder}/file is a file: name another place"),
        ("x" * 300, "(File name too long); name another file"),
        ("a\0b", "no file can have this name"),
        ("a\ud800", "half of a pair of surrogates"),
    ],
)
def test_what_cannot_be_written_is_refused_before_and_at_the_writing(tmp_path, name, why) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    for write in (refuse_unwritable, lambda path: write_whole(path, "x"), opened_to_append):
        with pytest.raises(rs.InputError) as raised:
            write(f"{tmp_path}/{name}")
        assert why.format(folder=tmp_path) in str(raised.value)
        assert "cannot be written" in str(raised.value)
    assert content(tmp_path) == {"file": b"x"}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder of somebody who is not root, and that somebody at work."""
    with TemporaryDirectory() as name:
        if ROOT:
            os.chown(name, 65534, 65534)
            os.seteuid(65534)
        yield Path(name)
        if ROOT:
            os.seteuid(0)


def test_a_file_or_folder_without_permission_is_refused(open_folder) -> None:
    (open_folder / "old").write_text("x")
    (open_folder / "old").chmod(0o400)
    (open_folder / "closed").mkdir(0o500)
    for name in ("old", "closed/x"):
        for write in (refuse_unwritable, lambda path: write_whole(path, "x"), opened_to_append):
            with pytest.raises(rs.InputError, match="Permission denied"):
                write(open_folder / name)
    assert content(open_folder) == {"old": b"x"}


def test_half_of_a_surrogate_pair_is_an_error(tmp_path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(rs.InputError, match=r"holds '\\ud800', half of a pair of surrogates"):
        write_whole(tmp_path / "x", "a\ud800")
    assert content(tmp_path) == {"x": b"old"}


@pytest.mark.parametrize(
    "words",
    [
        "evaluate labels.csv run.csv --output nowhere/x",
        "evaluate labels.csv run.csv --per-query nowhere/x.csv",
        "evaluate labels.csv run.csv --per-query x.xls",
        "evaluate labels.csv run.csv --per-query x.csv --output x.csv",
        "evaluate labels.csv run.csv --per-query -",
        "evaluate labels.csv run.csv a=run.csv --baseline run --output folder",
        "evaluate labels.csv run.csv --output x.pdf",
        "evaluate labels.csv run.csv --output nowhere/x.html",
        "labels draw s.db --draw agree:3 --output nowhere/x.html",
        "labels export s.db nowhere/x.csv",
        "demo --output file/x",
        "demo --write file/x",
    ],
)
def test_a_command_refuses_before_its_work_what_it_could_not_write_after_it(tmp_path, monkeypatch, words) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    # The inputs are not there: a command that began to work would complain of them.
    with pytest.raises(rs.InputError, match=r"cannot be|cannot both|cannot write|no LaTeX"):
        raise CliRunner().invoke(app, words.split()).exception  # type: ignore[misc]
    assert set(content(tmp_path)) == {"file"}


# -- what interrupts -----------------------------------------------------------------------------------


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """As on a full disk, a file can only grow to so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, name) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    WRITERS[name](tmp_path / "out.txt")
    old = dict.fromkeys(content(tmp_path), b"old")
    for path in old:
        (tmp_path / path).write_bytes(b"old")
    with file_size_limit(100), pytest.raises(rs.InputError, match="cannot be written"):
        WRITERS[name](tmp_path / "out.txt")
    assert content(tmp_path) == old


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_ctrl_c_and_an_error_leave_the_old_files(tmp_path, error) -> None:
    def interrupted(file: Any) -> None:
        file.write(b"half")
        raise error

    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(error):
        write_files({tmp_path / "a.txt": "new a", tmp_path / "b.txt": interrupted})
    assert content(tmp_path) == {"a.txt": b"old"}


# -- what holds users' texts ---------------------------------------------------------------------------


def test_stores_and_traces_are_for_their_owner_alone(tmp_path) -> None:
    before = os.umask(0)
    try:
        with Store(tmp_path / "labels.db") as store:
            store.add_texts([("q", "p", b"x" * 32, b"y" * 32)])
            made = sorted(tmp_path.glob("labels.db*"))
            assert len(made) > 1
            assert {mode(path) for path in made} == {0o600}
        monitor = Monitor({"q": {"a": 1}}, trace=tmp_path / "trace.jsonl", trace_texts=True)
        monitor.record(Retrieval("q", ["a"]))
        monitor.close()
        assert mode(tmp_path / "trace.jsonl") == 0o600
    finally:
        os.umask(before)


def test_a_trace_keeps_the_mode_that_somebody_gave_it_and_follows_a_link(tmp_path) -> None:
    (tmp_path / "there.jsonl").touch(0o640)
    (tmp_path / "there.jsonl").chmod(0o640)
    (tmp_path / "trace.jsonl").symlink_to("there.jsonl")
    with opened_to_append(tmp_path / "trace.jsonl") as file:
        append_whole(file, b"line\n")
    assert (tmp_path / "trace.jsonl").is_symlink()
    assert (mode(tmp_path / "there.jsonl"), (tmp_path / "there.jsonl").read_bytes()) == (0o640, b"line\n")


def test_a_line_for_which_a_disk_has_no_room_is_not_written_in_part(tmp_path) -> None:
    with opened_to_append(tmp_path / "trace.jsonl") as file, file_size_limit(100):
        append_whole(file, b"a" * 59 + b"\n")
        with pytest.raises(OSError, match=r"large|space"):
            append_whole(file, b"b" * 59 + b"\n")
    assert (tmp_path / "trace.jsonl").read_bytes() == b"a" * 59 + b"\n"
