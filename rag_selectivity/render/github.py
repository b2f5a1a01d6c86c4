"""Text for Markdown: shown as it is, whatever it contains, by GitHub, CommonMark and Python-Markdown."""

from __future__ import annotations

import re
import unicodedata

#: A comment in HTML, which is not shown, within what GitHub would make a link of after it has read the Markdown: a
#: mention (but not the depth of a measure, as in BoR@10), an issue, an emoji, an address.
_BREAK = "<!-- -->"
_LINKS = re.compile(
    r"(?<![A-Za-z0-9])@(?=\w)"
    r"|(?<=[A-Za-z0-9])@(?=\w)(?!\d+(?!\w|[.-]\w))"
    r"|#(?=\w)"
    r"|:(?=[\w+-]+:)"
    r"|:(?=//)"
    r"|\bGH(?=-\d)"
    r"|\bwww(?=\.)"
    r"|\b(?=\d*[a-f])[0-9a-f]{6}(?=[0-9a-f]{1,34}\b)",
    flags=re.IGNORECASE,
)
#: What Markdown reads as markup where it stands; an underscore within a word is none.
_MARKUP = re.compile(
    r"""
    [\\`*~{]
    | (?<![^\W_])_ | _(?![^\W_])
    | <(?![\s\d.=]) | &(?=[A-Za-z\#])
    | \](?=[(\[:]) | !(?=[\[!]) | \[(?=\^)
    # At the beginning of a line: headings, which may end in a number sign too, quotes, lists and rules.
    | \A[\#>=] | \#\Z | \A[+-](?=[\s-]|\Z) | \A\d+[.)](?=\s|\Z)
    """,
    flags=re.VERBOSE,
)
#: A bar ends a cell of a table; GitHub reads dollar signs as a formula, with a backslash too.
_IN_PLACE = {"|": "&#124;", "$": "<span>$</span>"}
#: What is written for signs that Python-Markdown reads as markup behind a backslash too.
_AS_MARKUP = {"<": "&lt;", "&": "&amp;", "~": "&#126;", "=": "&#61;", "]": "&#93;", "#": "&#35;"}
#: Characters that turn the direction of the text after them.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""A text on one line, escaped so that GitHub shows it as it is, in a table too.

    Of other Markdown, CommonMark and Python-Markdown were tried: they show it too, and make no tag of it. It becomes no
    markup, link, mention, issue, emoji or formula. Control characters (and halves of surrogate pairs) become spaces,
    and those that turn the direction of text are left out, as are spaces at both ends.

    >>> escaped("RA-nWG@10 of dense_large: .41 [.38, .44] (p < .001)")
    'RA-nWG@10 of dense_large: .41 [.38, .44] (p < .001)'
    >>> print(escaped("<b>*bold*</b> | @octocat fixes #12"))
    &lt;b>\*bold\*&lt;/b> &#124; @<!-- -->octocat fixes #<!-- -->12
    """
    plain = _TURNING.sub("", text)
    plain = "".join(" " if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in plain)
    # Indented text would be code, in which nothing is escaped.
    plain = plain.strip(" ")
    # Where the signs stand is looked up in the plain text, since an escape would be a neighbour of the next sign.
    markup = {found.end() - 1 for found in _MARKUP.finditer(plain)}
    links = {found.end() - 1 for found in _LINKS.finditer(plain)}
    return "".join(
        (_AS_MARKUP.get(sign, f"\\{sign}") if at in markup else _IN_PLACE.get(sign, sign))
        + (_BREAK if at in links else "")
        for at, sign in enumerate(plain)
    )
