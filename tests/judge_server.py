"""A local server of chat completions that answers as a function says, which is given the body of each request."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests import hostile_server

KEY = "sk-test-THIS-MUST-NEVER-BE-WRITTEN-0123456789"


@dataclass
class Reply:
    """What the server does with a request: a completion's content by default; of an error, the content is its words."""

    content: str | None = '{"reason": "as it is", "grade": 3}'
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    body: bytes | None = None
    message: dict[str, Any] = field(default_factory=dict)
    usage: tuple[int, int] | None = (100, 10)


def texts(request: dict[str, Any]) -> dict[str, str]:
    """The texts between markers of a request, by their titles: {"question": …, "passage": …}."""
    system, user = (message["content"] for message in request["messages"][:2])
    marker = re.search(r"carry the code (\w+)\.", system).group(1)
    found = re.findall(rf"\[{marker} begin ([^\]]+)\]\n(.*?)\n\[{marker} end \1\]", user, flags=re.S)
    return dict(found)


class JudgeServer(hostile_server.HostileServer):
    """`respond(body of the request, how often these texts were asked about)` gives a Reply; `bodies` are kept."""

    def __init__(self, respond: Callable[[dict[str, Any], int], Reply] = lambda request, n: Reply()) -> None:
        self.respond = respond
        self.bodies: list[dict[str, Any]] = []
        self.started: Counter[tuple[str, ...]] = Counter()
        super().__init__(self._reply)

    def _reply(self, request: hostile_server.Request, _: int) -> hostile_server.Reply:
        body = request.body
        subject = tuple(texts(body).values()) if "carry the code" in body["messages"][0]["content"] else ()
        self.bodies.append(body)
        self.started[subject] += 1
        given = dict(vars(self.respond(body, self.started[subject])))
        counts = given.pop("usage")
        return hostile_server.Reply(
            **given,
            model="m",
            error={"message": given["content"] or "no", "type": "error", "code": None},
            usage=counts and dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True)),
        )
