"""Two stand-ins for an LLM behind the protocol of OpenAI's API, on this machine: `python judge.py [PORT]`.

chat-model     repeats the grades of grades.csv, which a real chat model gave once; it knows no other pair
word-overlap   a cheap judge: it counts how many of the question's words are in the passage, and understands nothing;
               asked a question, it repeats the beginning of the passage with the most of the question's words;
               it answers for every other name too, so that commands for a real model can be tried
"""

import csv
import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
_STOP_WORDS = """
    a all an and are as at be by can do does for from has have how i in into is it its my not of on one or so some
    that the their them then this those to was what when which whether why will with without
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


# -- the grades -------------------------------------------------------------------------------------


def stems(text: str) -> set[str]:
    """The words of a text that say something, cut to their first five letters."""
    words = re.findall(r"[a-z]{2,}", text.lower())
    return {re.sub(r"(ing|ed|es|s|e)$", "", word)[:5] for word in words if word not in STOP_WORDS}


def overlap_grade(question: str, passage: str) -> int:
    """1 to 5 by the share of the question's words that are in the passage: below .2, .35, .5, .65, or more."""
    asked = stems(question)
    share = len(asked & stems(passage)) / max(len(asked), 1)
    return 1 + sum(share >= limit for limit in (0.2, 0.35, 0.5, 0.65))


class Unknown(Exception):
    """There is no recorded grade of a pair."""


def recorded_grades(folder: Path = FOLDER) -> dict[tuple[str, str], int]:
    """{(question, name of the passage): grade} of the chat model's first pass."""
    questions = {}
    with (folder / "queries.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            query = json.loads(line)
            questions[query["_id"]] = query["text"]
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as rows:
        return {(questions[row["query_id"]], row["passage_id"]): int(row["first"]) for row in csv.DictReader(rows)}


def recorded_grade(grades: Mapping[tuple[str, str], int], question: str, passage: str) -> int:
    """The grade of a passage, whose first line is its name and its arguments."""
    name = re.split(r"[(\n]", passage, maxsplit=1)[0].strip()
    if (question.strip(), name) not in grades:
        raise Unknown(f"no grade of passage {name!r} for the question {question!r} is recorded; use word-overlap")
    return grades[question.strip(), name]


# -- the answers ------------------------------------------------------------------------------------


def answer(request: Mapping[str, Any], grades: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """What a model answers to a request for grades or for a check of claims."""
    texts = texts_of(request)
    schema = schema_of(request)
    fields = schema["properties"]
    replays = request["model"] == "chat-model"

    def graded(passage: str) -> dict[str, Any]:
        question = texts["question"]
        grade = recorded_grade(grades, question, passage) if replays else overlap_grade(question, passage)
        reason = "as recorded" if replays else "by common words"
        return {"reason": reason, "relevant_span": None, "misleading": False, "grade": grade}

    passages = {title.removeprefix("passage").strip(): text for title, text in texts.items() if "passage" in title}
    if "grades" in fields:
        return {"grades": [{"passage": name, **graded(text)} for name, text in passages.items()]}
    if "grade" in fields and "passage" in texts:
        return graded(texts["passage"])
    if replays:
        raise Unknown("chat-model repeats grades alone; for claims and answers use word-overlap")
    if "grade" in fields:
        return {"reason": "by common words", "grade": overlap_grade(texts["reference answer"], texts["answer"])}
    if "answer" in fields or "choice" in fields:
        answered = answered_question(texts, list(passages.values()))
        return {name: answered[name] for name in fields}
    if "claims" in fields:
        taken_apart = texts["reference answer"] if "reference answer" in texts else texts["response"]
        parts = {"claims": sentences(taken_apart), "entities": sorted(set(re.findall(r"\b[A-Z]\w+", taken_apart)))}
        return {name: parts[name] for name in fields}
    return checked(fields, schema, texts, passages)


def schema_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the answer: a field of the request, or in words of the system, as Ragas' clients have it."""
    schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
    system = request["messages"][0]["content"]
    for place in () if schema else (match.start() for match in re.finditer(r"\{", system)):
        with suppress(ValueError):
            schema, _ = json.JSONDecoder().raw_decode(system, place)
            break
    if not isinstance(schema, dict) or "properties" not in schema:
        raise Unknown("this stand-in answers only requests with a JSON schema")
    return schema


def answered_question(texts: Mapping[str, str], passages: list[str]) -> dict[str, Any]:
    """The first sentence of the passage that has the most of the question's words, or the option that it fits best."""
    asked = stems(texts["question"])
    shared = [len(asked & stems(passage)) for passage in passages]
    best = shared.index(max(shared)) if passages else None
    text = "" if best is None else passages[best]
    options = re.findall(r"^([A-Z])\. (.+)$", texts.get("options", ""), flags=re.M)
    # An option is the name of a function, and so is the first line of a passage.
    named = [letter for letter, option in options if re.split(r"[(\n]", text, maxsplit=1)[0].strip() == option]
    said = sentences(text.partition("\n")[2])
    return {
        "answer": said[0] if said else "",
        "choice": (named or [letter for letter, _ in options] or [""])[0],
        "passages": [] if best is None else [best + 1],
        "abstain": best is None or not max(shared),
    }


def checked(
    fields: Mapping[str, Any], schema: Mapping[str, Any], texts: Mapping[str, str], passages: Mapping[str, str]
) -> dict[str, Any]:
    """Which claims the passages support: those of which half of the words are in them."""
    claims = re.findall(r"^\d+\. (.+)$", texts.get("claims", ""), flags=re.M)
    entities = re.findall(r"^\d+\. (.+)$", texts.get("entities", ""), flags=re.M)

    def of(text: str) -> dict[str, Any]:
        held = stems(text)
        said = [{"statement": each, "relevant": overlap_grade(texts["question"], each) > 2} for each in sentences(text)]
        return {
            "reason": "by common words",
            "supported": [n for n, each in enumerate(claims, 1) if len(stems(each) & held) >= len(stems(each)) / 2],
            "useful": overlap_grade(texts.get("question", ""), text) > 2,
            "mentioned": [n for n, each in enumerate(entities, 1) if each in text],
            "statements": said,
        }

    if "passages" in fields:
        wanted = schema["$defs"][fields["passages"]["items"]["$ref"].split("/")[-1]]["properties"]
        rows = {int(name): of(text) for name, text in passages.items()}
        return {
            "passages": [{"passage": n, **{k: v for k, v in row.items() if k in wanted}} for n, row in rows.items()]
        }
    return {key: value for key, value in of(" ".join(passages.values())).items() if key in fields}


def texts_of(request: Mapping[str, Any]) -> dict[str, str]:
    """{title: text} of the texts between the markers of a request."""
    asked = request["messages"][-1]["content"]
    found = re.findall(r"\[(\w+) begin ([^\]]+)\]\n(.*?)\n\[\1 end \2\]", asked, flags=re.S)
    return {title: text for _, title, text in found}


def sentences(text: str) -> list[str]:
    return [each.strip() for each in re.split(r"(?<=\.)\s+|\n\n", text) if each.strip()]


# -- the server -------------------------------------------------------------------------------------


def serve(port: int = 8000) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that answers `/v1/chat/completions`; call its `serve_forever`."""
    grades = recorded_grades()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                content = json.dumps(answer(request, grades))
            except Unknown as error:
                self.reply(400, {"error": {"message": str(error), "type": "invalid_request_error", "code": None}})
                return
            message = {"role": "assistant", "content": content}
            words = sum(len(each["content"].split()) for each in request["messages"])
            usage = {"prompt_tokens": words, "completion_tokens": len(content.split())}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            model = request["model"]
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
            self.reply(200, {**body, "usage": usage})

        def reply(self, status: int, body: Mapping[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """A line for each request would bury the commands of the same terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    return Server(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
    print(f"chat-model and word-overlap answer at http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()
