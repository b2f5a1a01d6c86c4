"""A local server that speaks the chat-completions protocol and misbehaves on demand."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-THIS-MUST-NEVER-BE-WRITTEN-0123456789"


@dataclass
class Reply:
    """What the server does with a request: a completion's content by default."""

    content: str | None = '{"reason": "as it is", "grade": 3}'
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    body: bytes | None = None
    message: dict[str, Any] = field(default_factory=dict)
    usage: tuple[int, int] | None = (100, 10)


def texts(request: dict[str, Any]) -> dict[str, str]:
    """The texts between markers of a request, by their titles: {"question": …, "passage": …}."""
    system, user = (message["content"] for message in request["messages"][:2])
    marker = re.search(r"carry the code (\w+)\.", system).group(1)
    found = re.findall(rf"\[{marker} begin ([^\]]+)\]\n(.*?)\n\[{marker} end \1\]", user, flags=re.S)
    return dict(found)


class JudgeServer:
    """`respond(request, number of calls so far)` gives a Reply; requests and counts are kept."""

    def __init__(self, respond: Callable[[dict[str, Any], int], Reply] = lambda request, n: Reply()) -> None:
        self.respond = respond
        self.requests: list[dict[str, Any]] = []
        self.authorizations: set[str] = set()
        self.started: Counter[tuple[str, ...]] = Counter()
        self.finished: Counter[tuple[str, ...]] = Counter()
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: Any) -> None:
                pass  # a client that was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> JudgeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        request = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        subject = tuple(texts(request).values()) if "carry the code" in request["messages"][0]["content"] else ()
        with self._lock:
            self.requests.append(request)
            self.authorizations.add(handler.headers.get("authorization", ""))
            self.times.append(time.monotonic())
            self.started[subject] += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            reply = self.respond(request, self.started[subject])
        time.sleep(reply.delay)
        with self._lock:
            self.at_once -= 1
        body = reply.body if reply.body is not None else self._body(reply)
        if reply.cut:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n" + body[:20])
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        with self._lock:
            self.finished[subject] += 1

    @staticmethod
    def _body(reply: Reply) -> bytes:
        if reply.status != 200:
            return json.dumps({"error": {"message": reply.content or "no", "type": "error", "code": None}}).encode()
        message = {"role": "assistant", "content": reply.content, **reply.message}
        data: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        data["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
        if reply.usage is not None:
            data["usage"] = {"prompt_tokens": reply.usage[0], "completion_tokens": reply.usage[1]}
        return json.dumps(data).encode()
