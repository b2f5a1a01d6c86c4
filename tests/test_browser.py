"""What the browser's checks find in pages whose faults are known, and that they find nothing in a page without any."""

import pytest

from tests.browser import Window, axe, first_screen, overflow

pytestmark = pytest.mark.contract

SOUND = """<!doctype html><html lang="en"><head><title>t</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>.scroll {{ overflow-x: auto }} .wide {{ width: 2000px }} .tall {{ height: 700px }}</style></head>
<body><main><h1>Title <b>of it</b></h1>{}</main></body></html>"""


@pytest.fixture
def opened(chromium, tmp_path):
    windows = []

    def open_(body: str) -> Window:
        (tmp_path / "page.html").write_text(SOUND.format(body))
        windows.append(Window(chromium, tmp_path / "page.html", viewport={"width": 800, "height": 600}))
        return windows[-1]

    yield open_
    for each in windows:
        each.context.close()


def test_a_sound_page_has_no_faults(opened) -> None:
    shown = opened('<div class="scroll" tabindex="0" role="region" aria-label="r"><p class="wide">text</p></div>')
    assert (axe(shown.page), overflow(shown.page), shown.is_quiet()) == ([], [], True)


def test_missing_names_and_faint_text_are_found(opened) -> None:
    found = axe(opened('<button></button><p style="color: #aaa; background: #fff">faint</p>').page)
    assert [each.split()[0] for each in found] == ["button-name", "color-contrast"]
    assert "2.32: #aaaaaa on #ffffff" in found[1]


@pytest.mark.parametrize(
    ("body", "culprit"),
    [
        ('<section><p class="wide">text</p></section>', "p.wide"),
        (f"<p id=long>{'x' * 500}</p>", "p#long"),
        ('<div class="scroll">text</div><table><tr><td><div class="wide">x</div></td></tr></table>', "div.wide"),
        ('<div style="overflow: auto; width: 1000px">text</div>', "div ends at 1008"),
        ("<style>body { overflow-x: hidden }</style><p class=wide>text</p>", "p.wide"),
    ],
)
def test_what_is_too_wide_is_named(opened, body, culprit) -> None:
    (found,) = overflow(opened(body).page)
    assert found.startswith(culprit)


def test_the_first_screen_ends_where_a_line_is_cut_off(opened) -> None:
    body = """<p hidden>hidden</p><details><summary>More</summary>folded</details><p>seen</p>
    <div style="height: 1em; overflow: hidden"><p style="margin: 3em 0">clipped</p></div>
    <div class="tall"></div><p>below</p>"""
    shown = opened(body)
    assert first_screen(shown.page, 600) == ["Title of it", "More", "seen"]
    shown.page.evaluate("scrollTo(0, 1000)")
    assert first_screen(shown.page, 600) == ["Title of it", "More", "seen"]
    assert first_screen(shown.page, 1200)[-1] == "below"


def test_errors_and_requests_are_complaints(opened) -> None:
    shown = opened('<script>harm</script><img alt="i" src="https://example.test/i.png">')
    shown.page.wait_for_timeout(50)
    assert len(shown.complaints) >= 2
    assert not shown.is_quiet()
