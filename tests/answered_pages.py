"""Answers to a page of `labels draw`, as a person's browser saves them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_page(page: str | Path) -> list[dict[str, Any]]:
    """The items of a page, in its order: question, passage, and the fingerprints of both."""
    data = _data(Path(page))
    return [
        {"question": data["queries"][query][0], "query": data["queries"][query][1], "text": text, "passage": passage}
        for query, text, passage in data["items"]
    ]


def answer_page(page: str | Path, target: str | Path, grade_of: Callable[[dict[str, Any]], int]) -> int:
    """Grade each item of a page, and write the answers; how many."""
    data, items = _data(Path(page)), read_page(page)
    answers = [
        {"item": n, "query": item["query"], "passage": item["passage"], "grade": grade_of(item), "skipped": False}
        for n, item in enumerate(items)
    ]
    kept = {name: data[name] for name in ("format", "version", "task", "annotator", "rubric")}
    Path(target).write_text(json.dumps({**kept, "items": len(items), "answers": answers}), encoding="utf-8")
    return len(items)


def _data(page: Path) -> dict[str, Any]:
    found = re.search(r'<script[^>]*type="?application/json"?[^>]*>(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data
