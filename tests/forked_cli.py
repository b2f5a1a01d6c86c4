"""Processes of the command line that start in milliseconds: forks of one process that has imported everything.

    python -m tests.forked_cli

reads a run per line of standard input, {"cwd", "argv", "env", "out", "err"} as JSON, and answers with a line
{"pid"} at its start and a line {"pid", "code"} at its end. Importing takes a second, which a hundred runs cannot spare.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

import rag_selectivity as rs

PRELOADED = (
    "anyio._backends._asyncio httpcore2 jinja2 matplotlib.backends.backend_svg matplotlib.figure mpl_toolkits.mplot3d "
    "numpy.random openai.resources.chat pyarrow scipy.special scipy.stats sqlite3 rag_selectivity.cli.gates "
    "rag_selectivity.advice rag_selectivity.explain rag_selectivity.golden rag_selectivity.grading.openai_judge "
    "rag_selectivity.grading.labels_format rag_selectivity.render.html typer._adapters"
)


def serve() -> None:
    """Fork for every line of standard input, until it ends."""
    for name in PRELOADED.split():
        # What an extra lacks is missed by the commands that need it, and tested there.
        with suppress(ImportError):
            import_module(name)
    for name in rs.__all__:
        with suppress(ImportError):
            getattr(rs, name)
    import_module("rag_selectivity.cli.app").all_commands()
    gc.freeze()
    buffer = b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.01)
        if ready:
            read = os.read(0, 65536)
            if not read:
                return
            buffer += read
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    _become(json.loads(line))
                _tell({"pid": pid})
        _reap()


def _reap() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _tell({"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _tell(row: dict[str, int]) -> None:
    os.write(1, json.dumps(row).encode() + b"\n")


def _become(run: dict[str, Any]) -> None:
    """Be `python -m rag_selectivity` with these arguments, or `python -c` with a script."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, path in ((1, run["out"]), (2, run["err"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.chdir(run["cwd"])
    os.environ.clear()
    os.environ.update(run["env"])
    sys.argv = ["rag-selectivity", *run["argv"]]
    # The command's name in its messages comes from the package of the main module.
    sys.modules["__main__"].__package__ = None
    code = None
    try:
        if run["argv"][0] == "-c":
            sys.argv = ["-c", *run["argv"][2:]]
            exec(run["argv"][1], {"__name__": "__main__"})
        else:
            runpy.run_module("rag_selectivity", run_name="__main__", alter_sys=False)
    except SystemExit as end:
        code = end.code
        if not isinstance(code, int | None):
            raise
    # The interpreter ends as it would have from its own start, with its threads, handlers and exit code, but frees
    # no module: that copies the memory of all that was imported, and takes longer than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


class Server:
    """The process that forks, and its children's exit codes."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[1]
        command = [sys.executable, "-m", "tests.forked_cli"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, cwd=root, stdin=pipe, stdout=pipe, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        )
        self._codes: dict[int, int] = {}
        self._buffer = b""
        self._lock = threading.Lock()

    def start(self, **run: Any) -> int:
        """Start a run; its process id."""
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(run).encode() + b"\n")
            self._process.stdin.flush()
            while True:
                for row in self._rows(10):
                    if "code" not in row:
                        return row["pid"]

    def code(self, pid: int, seconds: float) -> int | None:
        """The exit code of a run, negative if a signal ended it; None if it still runs after so many seconds."""
        end = time.monotonic() + seconds
        while pid not in self._codes and (left := end - time.monotonic()) > 0:
            with self._lock:
                self._rows(min(left, 0.02))
            time.sleep(0.001)  # a lock that is taken again at once is never another thread's
        return self._codes.get(pid)

    def _rows(self, seconds: float) -> list[dict[str, int]]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], seconds)[0]:
            return []
        read = os.read(descriptor, 65536)
        if not read:
            raise RuntimeError("the process that starts the command line has ended")
        *lines, self._buffer = (self._buffer + read).split(b"\n")
        rows: list[dict[str, int]] = [json.loads(line) for line in lines]
        for row in rows:
            # The number of a process that has ended may come again; a short run starts and ends within one reading.
            if "code" in row:
                self._codes[row["pid"]] = row["code"]
            else:
                self._codes.pop(row["pid"], None)
        return rows


#: A process that is measured for coverage, and a platform without forks, start each command by itself.
FORKS = hasattr(os, "fork") and not any(name.startswith(("COVERAGE", "COV_CORE")) for name in os.environ)
_SERVERS: list[Server] = []
_FIRST = threading.Lock()
_NUMBERS = count()


def _server() -> Server:
    """The one server of this process; threads share it, since it takes seconds to import everything."""
    with _FIRST:
        if not _SERVERS:
            _SERVERS.append(Server())
    return _SERVERS[0]


def run_command(
    *words: Any, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command, or `-c` and a script, to its end, as `subprocess.run` does with `capture_output` and `text`."""
    arguments = [str(word) for word in words]
    variables = dict(os.environ if env is None else env)
    if not FORKS:
        module = [] if arguments[0] == "-c" else ["-m", "rag_selectivity"]
        command = [sys.executable, *module, *arguments]
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, timeout=timeout, env=variables
        )
    process = ForkedProcess(arguments, Path.cwd() if cwd is None else cwd, variables)
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(["rag-selectivity", *arguments], process.returncode or 0, out, err)


class ForkedProcess:
    """A run of the command line, with those methods of `subprocess.Popen` that the tests use."""

    def __init__(self, arguments: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._server = _server()
        number = f"{os.getpid()}-{next(_NUMBERS)}"
        folder = Path(tempfile.gettempdir())
        self._files = (folder / f"rag-selectivity-{number}.out", folder / f"rag-selectivity-{number}.err")
        out, err = map(str, self._files)
        self.pid = self._server.start(cwd=str(cwd), argv=arguments, env=dict(env), out=out, err=err)
        self.returncode: int | None = None

    def communicate(self, timeout: float = 10) -> tuple[str, str]:
        """Wait for the end; what was written to standard output and to standard error."""
        self.returncode = self._server.code(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("rag-selectivity", timeout)
        out, err = (path.read_text() for path in self._files)
        for path in self._files:
            path.unlink()
        return out, err

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, if it has not ended."""
        if self._server.code(self.pid, 0) is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)


COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as asked, asked.makefile("rw") as file:
    print(json.dumps([sys.argv[1:], os.getcwd(), {{**os.environ}}]), file=file, flush=True)
    code, out, error = json.load(file)
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(code)
"""


class _Commands(StreamRequestHandler):
    def handle(self) -> None:
        words, folder, env = json.loads(self.rfile.readline())
        done = run_command(*words, cwd=Path(folder), env=env)
        self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


@contextmanager
def command_in(folder: Path) -> Iterator[None]:
    """A script `rag-selectivity` in a folder, for shells and notebooks, which has its command run in a fork."""
    script = folder / "rag-selectivity"
    with ThreadingTCPServer(("127.0.0.1", 0), _Commands) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        script.write_text(COMMAND.format(python=sys.executable, port=server.server_address[1]), encoding="utf-8")
        script.chmod(0o755)
        yield
        server.shutdown()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve()
