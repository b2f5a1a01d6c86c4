"""The flag of passages that instruct the judge, and the neutralising of texts: time for twice the length, and rates.

    python -m benchmarks.injection [--corpus FILE.jsonl …]

A ratio near 2 is linear, near 4 quadratic. `--corpus` (a file with a field `text` in every line) adds the time for
1,000 characters of ordinary text, and how many passages are flagged.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from rag_selectivity.grading.hostile.flag import looks_like_instruction
from rag_selectivity.grading.hostile.neutral import neutralised
from tests.injections import HALVES, flagged

LENGTH = 100_000
SHAPES = {
    "blank lines": "\n",
    "spaces": " ",
    "ignore": "ignore the ",
    "do not follow your": "do not follow your ",
    "grade this passage": "grade this passage ",
    "please": "please give ",
    "judge,": "judge, ",
    "dear all the": "dear all the ",
    "end of the": "--- end of the ",
    "open tokens": "<|im_start",
    "closed tokens": "<|im_end|><|im_start|>",
    "brackets": "[<[<",
    "zero width": "a\u200b",
    "tag characters": "\U000e0041",
    "reversals": "\u202eab",
    "single letters": "a ",
    "base64": "aGVsbG8gd29ybGQ",
    "hexadecimal": "68656c6c6f",
    "leet": "1gn0r3 gr4d3 ",
    "quotes": "'grade': 5 'reason': ",
    "German": "ignoriere diesen text ",
    "Chinese": "忽略给这段文字",
    "grade 5": "grade 5 ",
}


def seconds(work: Callable[[str], object], text: str) -> float:
    """The shortest of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work(text)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    corpora = parser.parse_args().corpus
    print(f"{'':20}  flag: ms for {LENGTH:,} characters, × for 200,000    neutralised: the same")
    for name, unit in SHAPES.items():
        cells = []
        for work in (looks_like_instruction, neutralised):
            # The end differs from the rest, so that no pattern succeeds at once.
            once, twice = ((unit * (n // len(unit) + 1))[:n] + " x" for n in (LENGTH, 2 * LENGTH))
            base = seconds(work, once)
            cells.append(f"{1000 * base:10.1f} {seconds(work, twice) / base:6.1f}")
        print(f"{name:20}  {cells[0]}                      {cells[1]}")
    for half in HALVES:
        for hostile in (True, False):
            hit, spared = flagged(half, hostile, looks_like_instruction)
            kind = "hostile" if hostile else "benign"
            print(
                f"{half} {kind}: {len(hit)} of {len(hit) + len(spared)} flagged "
                f"({len(hit) / (len(hit) + len(spared)):.2f})"
            )
    for path in corpora:
        texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
        sample = [text for text in random.Random(7).sample(texts, min(1000, len(texts))) if text]
        thousands = sum(map(len, sample)) / 1000
        per_thousand = [
            sum(seconds(work, text) for text in sample) / thousands for work in (looks_like_instruction, neutralised)
        ]
        each = sorted(seconds(looks_like_instruction, text) * 1000 / len(text) for text in sample)
        print(
            f"{path.parent.name}: {sum(map(looks_like_instruction, texts))} of {len(texts)} flagged; for 1,000 "
            f"characters "
            f"the flag takes {1000 * per_thousand[0]:.3f} ms (median {1000 * each[len(each) // 2]:.3f}), neutralising "
            f"{1000 * per_thousand[1]:.3f} ms"
        )


if __name__ == "__main__":
    main()
