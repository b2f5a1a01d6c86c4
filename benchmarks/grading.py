"""The grader against a local server: how close to the ideal, how fast a full store, how flat the memory.

    python benchmarks/grading.py [--pairs-from-disk 1000000] [--rounds 3]

There are two ideals: pairs × latency / concurrency, and a client in the same minute that sends prepared bytes over
raw sockets and reads the answers without looking at them. Server and client share the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rag_selectivity.grading.grade import grade
from rag_selectivity.grading.prompts import GradingPrompt
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Label, Settings, Store, digest

LATENCY, CONCURRENCY, PAIRS, FEWER = 0.02, 64, 10_000, 2_000

SERVER = """
import asyncio, json, sys
content = json.dumps({"reason": "as it is", "grade": 3})
body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 15, "total_tokens": 315}}).encode()
reply = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(body) + body

async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\\r\\n")[0]))
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def pool(queries: int, depth: int) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    texts = {f"d{i}": f"passage number {i}: " + "words and more words " * 10 for i in range(max(depth, queries))}
    asked = {f"q{i}": f"what of number {i}?" for i in range(queries)}
    return asked, texts, {q: [f"d{(i + j) % len(texts)}" for j in range(depth)] for i, q in enumerate(asked)}


#: The peak of memory in MB. Linux hands `ru_maxrss` down from parent to child, but not VmHWM.
PEAK = """
def peak():
    import pathlib, re, resource
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text()).group(1)) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
"""

#: Prints seconds and the peak of memory in MB; its arguments are the server's URL, the store and the number of pairs.
GRADER = f"""
import sys, time
{PEAK}
sys.path.insert(0, {str(Path(__file__).parent)!r})
from grading import CONCURRENCY, pool
from rag_selectivity.grading.grade import grade
from rag_selectivity.grading.limits import Limits
from rag_selectivity.grading.openai_judge import OpenAIJudge
url, store, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])
queries, corpus, pools = pool(pairs // 100, 100)
judge, limits = OpenAIJudge("m", base_url=url, api_key="none"), Limits(concurrency=CONCURRENCY)
start = time.perf_counter()
done = grade(queries, corpus, pools, store=store, judge=judge, limits=limits, progress=False)
seconds = time.perf_counter() - start
if done.graded != pairs:
    raise SystemExit(f"{{done.graded}} of {{pairs}} pairs were graded")
print(seconds, peak())
"""


async def ideal_client(port: int, pairs: int) -> float:
    """Seconds for as many requests, prepared as bytes, whose answers nobody reads."""
    messages, _ = GradingPrompt(DEFAULT_RUBRIC).one("what of it?", "words and more words " * 10)
    body = json.dumps({"model": "m", "messages": messages, "max_completion_tokens": 1000}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {len(body)}\r\n\r\n"
    request, todo = head.encode() + body, iter(range(pairs))

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in todo:
            writer.write(request)
            answered = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(answered.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return time.perf_counter() - start


def grader(url: str, store: Path, pairs: int) -> tuple[float, float]:
    """Seconds and the peak of memory in MB of a process that grades so many pairs."""
    command = [sys.executable, "-c", GRADER, url, str(store), str(pairs)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = map(float, finished.stdout.split())
    return seconds, peak


def against_the_ideal(folder: Path, rounds: int) -> None:
    """Grader and ideal client in turn; the medians of their times."""
    with subprocess.Popen([sys.executable, "-c", SERVER, str(LATENCY)], stdout=subprocess.PIPE, text=True) as server:
        if server.stdout is None:
            raise RuntimeError("the server has no output to tell its port")
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1"
        ours, ideals = [], []
        for number in range(rounds):
            ideals.append(asyncio.run(ideal_client(port, PAIRS)))
            ours.append(grader(url, folder / f"ideal{number}.db", PAIRS))
        _, fewer = grader(url, folder / "fewer.db", FEWER)
        server.kill()
    seconds, client = statistics.median(row[0] for row in ours), statistics.median(ideals)
    limit = PAIRS * LATENCY / CONCURRENCY
    print(f"{PAIRS} pairs, {LATENCY * 1000:.0f} ms, {CONCURRENCY} at once: {seconds:.2f} s")
    print(f"    pairs × latency / concurrency: {limit:.2f} s; the grader reaches {limit / seconds:.2f} of it")
    print(f"    an ideal client:               {client:.2f} s; the grader reaches {client / seconds:.2f} of it")
    print(f"    peak of memory: {fewer:.0f} MB for {FEWER} pairs, {max(row[1] for row in ours):.0f} MB for {PAIRS}")


async def never(messages: object, schema: object) -> None:
    raise AssertionError("a full store asks nothing")


def full_store(folder: Path) -> None:
    queries, corpus, pools = pool(1000, 100)
    path = folder / "full.db"
    with Store(path) as store:
        said = {"rubric": "utility", "rubric_version": DEFAULT_RUBRIC.version, "prompt_version": "1"}
        number = store.settings_id(Settings("grade", "never", {}, **said))
        labels = [
            Label((number, digest(queries[q]), digest(corpus[p]), 0), 3, reason="as it is")
            for q, row in pools.items()
            for p in row
        ]
        store.put(labels).result()
    grade(queries, corpus, pools, store=path, judge=never)
    start = time.perf_counter()
    done = grade(queries, corpus, pools, store=path, judge=never)
    print(f"second run over {done.cached} pairs: {time.perf_counter() - start:.2f} s")


def from_disk(folder: Path, pairs: int) -> None:
    """Peak memory of a process that plans (and begins) to grade so many pairs from files."""
    queries, depth = pairs // 1000, 1000
    with (folder / "queries.jsonl").open("w") as file:
        file.writelines(json.dumps({"_id": f"q{i}", "text": f"what of number {i}?"}) + "\n" for i in range(queries))
    with (folder / "corpus.jsonl").open("w") as file:
        words = "words and more words " * 10
        file.writelines(
            json.dumps({"_id": f"d{i}", "text": f"passage {i}: {words}"}) + "\n" for i in range(pairs // 10)
        )
    with (folder / "pool.trec").open("w") as file:
        for i in range(queries):
            file.writelines(f"q{i} Q0 d{(i * 97 + j) % (pairs // 10)} {j + 1} {depth - j} t\n" for j in range(depth))
    files = ", ".join(repr(str(folder / name)) for name in ("queries.jsonl", "corpus.jsonl", "pool.trec"))
    code = f"""
import sys, time
{PEAK}
from rag_selectivity.grading.grade import grade
from rag_selectivity.grading.limits import Budget, Limits
async def judge(messages, schema):
    return '{{"reason": "r", "grade": 3}}'
start, limits, budget = time.perf_counter(), Limits(concurrency=32), Budget(calls=int(sys.argv[2]))
done = grade({files}, store=sys.argv[1], judge=judge, limits=limits, budget=budget)
print(done.graded, time.perf_counter() - start, peak())
"""
    for calls in (1000, 50_000):
        command = [sys.executable, "-c", code, str(folder / f"disk{calls}.db"), str(calls)]
        graded, seconds, peak = map(
            float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        )
        print(f"{pairs} pairs from disk, {graded:.0f} of them graded: {seconds:.1f} s, peak {peak:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs-from-disk", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        against_the_ideal(folder, options.rounds)
        full_store(folder)
        for pairs in (options.pairs_from_disk // 10, options.pairs_from_disk):
            from_disk(folder, pairs)
    print(f"this process: peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB")


if __name__ == "__main__":
    main()
