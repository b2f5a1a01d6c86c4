"""Writes `images/report-1280.png` and `images/report-360.png`: the first screen of the report of six runs.

python docs/make_screenshots.py CRANFIELD [FOLDER]

CRANFIELD is the folder of the Cranfield collection: corpus.jsonl, queries.jsonl, qrels.trec, runs/bm25.trec and
runs/lsa.trec. FOLDER takes the pictures (default: docs/images). It drives the Chromium of the machine with playwright.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The tests' own runs and browser: they are in the checkout, and in no installed package.
sys.path.insert(0, str(ROOT))

NEEDED = ("corpus.jsonl", "queries.jsonl", "qrels.trec", "runs/bm25.trec", "runs/lsa.trec")
#: Width and height of the pictures.
SIZES = ((1280, 800), (360, 800))
LARGEST = 250_000


def main(words: list[str]) -> None:
    """Make the report, take its pictures, and say what was written."""
    if len(words) not in (1, 2):
        raise SystemExit(
            "error: give the folder of the Cranfield collection: docs/make_screenshots.py CRANFIELD [FOLDER]"
        )
    cranfield = Path(words[0])
    folder = Path(words[1]) if len(words) == 2 else ROOT / "docs" / "images"
    missing = [name for name in NEEDED if not (cranfield / name).is_file()]
    if missing:
        raise SystemExit(f"error: {cranfield} has no {', '.join(missing)}; give the folder of the Cranfield collection")
    try:
        from playwright.sync_api import sync_playwright

        from tests.browser import NO_CHROMIUM, chromium_program
        from tests.report_worlds import six_runs
    except ImportError as error:
        raise SystemExit(f"error: there is no package {error.name}: pip install -e '.[all,dev]'") from None
    program = chromium_program()
    if program is None:
        raise SystemExit(f"error: {NO_CHROMIUM}; RAG_SELECTIVITY_CHROMIUM names one elsewhere")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, sync_playwright() as playwright:
        page = six_runs(Path(scratch), cranfield).report()
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width, height in SIZES:
            target = folder / f"report-{width}.png"
            target.write_bytes(small(picture(browser, page, width, height)))
            print(f"{target}: {width} × {height}, {target.stat().st_size / 1000:.0f} kB")
        browser.close()


def picture(browser: Any, page: Path, width: int, height: int) -> bytes:
    """The first screen of a page in light colours, as PNG."""
    shown = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    shown.goto(page.as_uri())
    taken: bytes = shown.screenshot(animations="disabled")
    shown.close()
    return taken


def small(png: bytes) -> bytes:
    """The same picture with the most colours that keep it below the largest size, at most 256."""
    from PIL import Image

    whole = Image.open(BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64, 32, 16):
        out = BytesIO()
        whole.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        if out.tell() <= LARGEST:
            return out.getvalue()
    raise SystemExit(f"error: the picture is larger than {LARGEST / 1000:.0f} kB even with 16 colours")


if __name__ == "__main__":
    main(sys.argv[1:])
