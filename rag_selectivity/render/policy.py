"""The policy of a page: what a browser may do with it, whatever texts it holds."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256


def page_policy(*, styles: Iterable[str], scripts: Iterable[str], style_attributes: bool) -> str:
    """A Content-Security-Policy under which nothing is loaded or sent, and only these styles and scripts apply.

    Parameters
    ----------
    styles, scripts : iterable of str
        What stands between the tags, to the letter; the policy has their hashes.
    style_attributes : bool
        Whether elements have `style` attributes, as drawings do. Those cannot be hashed one by one. Older browsers,
        which do not tell them from style elements, then allow all styles.

    >>> page_policy(styles=[], scripts=[], style_attributes=False).split("; ")[:3]
    ["default-src 'none'", "style-src 'none'", "script-src 'none'"]
    """
    of_styles, of_scripts = _hashes(styles), _hashes(scripts)
    style = f"style-src {of_styles}"
    if style_attributes:
        style = f"style-src 'unsafe-inline'; style-src-elem {of_styles}; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; {style}; script-src {of_scripts}; base-uri 'none'; form-action 'none'"


def _hashes(texts: Iterable[str]) -> str:
    digests = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
