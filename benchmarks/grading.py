"""The grader against a local server: how close to an ideal client, how fast over a full store, how flat the memory.

    python -m benchmarks.grading [--pairs 10000] [--rounds 3] [--quick]

The ideal is a client in the same minute that sends prepared bytes over raw sockets and reads answers without looking
at them; pairs × latency / concurrency stands beside it. Server and client share the processor. Memory is the peak of a
process of its own.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rag_selectivity as rs
from benchmarks.speed import memory

LATENCY, CONCURRENCY = 0.02, 64
ANSWER = json.dumps({"reason": "as it is", "grade": 3})
BODY = json.dumps(
    {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 15, "total_tokens": 315},
    }
).encode()
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY


async def serve() -> None:
    """Answer everything after the latency; the first line of output is the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
                await asyncio.sleep(LATENCY)
                writer.write(REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def ideal(port: int, pairs: int) -> float:
    """Seconds for as many requests, prepared as bytes, whose answers nobody reads."""
    messages = [{"role": "user", "content": "words and more words " * 60}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {len(body)}\r\n\r\n"
    todo = iter(range(pairs))

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in todo:
            writer.write(head.encode() + body)
            answered = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(answered.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return time.perf_counter() - start


def grade(port: int, store: str, pairs: int) -> tuple[float, float, float]:
    """Seconds to grade so many pairs, seconds of a second run over the full store, and the peak in MB."""
    from rag_selectivity.grading.openai_judge import OpenAIJudge

    texts = {f"d{i}": f"passage number {i}: " + "words and more words " * 10 for i in range(max(100, pairs // 100))}
    queries = {f"q{i}": f"what of number {i}?" for i in range(pairs // 100)}
    pool = {query: [f"d{(i + j) % len(texts)}" for j in range(100)] for i, query in enumerate(queries)}
    judge = OpenAIJudge("m", base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
    seconds = []
    for graded in (pairs, 0):
        start = time.perf_counter()
        limits = rs.Limits(concurrency=CONCURRENCY)
        done = rs.grade(queries, texts, pool, store=store, judge=judge, limits=limits, progress=False)
        seconds.append(time.perf_counter() - start)
        if done.graded != graded:
            raise SystemExit(f"{done.graded} pairs were graded, not {graded}")
    return seconds[0], seconds[1], memory("VmHWM")


def main() -> None:
    """Print medians, beside the ideal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="500 pairs, once")
    for name in ("serve", "grade"):
        parser.add_argument(f"--{name}", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve())
    elif given.grade:
        port, store, pairs = given.grade
        print(*grade(int(port), store, int(pairs)))
    else:
        compare(*((500, 1) if given.quick else (given.pairs, given.rounds)))


def compare(pairs: int, rounds: int) -> None:
    """Grader and ideal client in turn; the least of the rounds counts."""
    start = [sys.executable, "-m", "benchmarks.grading"]
    ours, ideals = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*start, "--serve"], stdout=subprocess.PIPE, text=True) as server,
    ):
        port = int(server.stdout.readline()) if server.stdout else 0
        for number in range(rounds):
            ideals.append(asyncio.run(ideal(port, pairs)))
            words = [*start, "--grade", str(port), str(Path(folder) / f"{number}.db"), str(pairs)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            ours.append([float(word) for word in done.stdout.split()[-3:]])
        server.kill()
    seconds, again, peak = (min(column) for column in zip(*ours, strict=True))
    print(f"{pairs:,} pairs, {LATENCY * 1000:.0f} ms, {CONCURRENCY} at once: {seconds:.2f} s, peak {peak:.0f} MB")
    print(f"    an ideal client {min(ideals):.2f} s; the grader takes {seconds / min(ideals):.2f} ×")
    print(f"    pairs × latency / concurrency {pairs * LATENCY / CONCURRENCY:.2f} s")
    print(f"    a second run over the full store {again:.2f} s")


if __name__ == "__main__":
    main()
