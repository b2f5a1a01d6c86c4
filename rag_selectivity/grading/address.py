"""The address of an endpoint: what in it is a secret, and how it is shown without that."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import SplitResult, quote, unquote

#: The only value of a query that is no secret.
_PUBLIC = ("api-version",)
#: A shorter value, such as a version, may occur in any text; it is a secret behind its name alone.
SHORTEST_SECRET = 6
_PARTS = re.compile(r"([?&;#])([^?&;#=]*)(=?)([^&;#]*)")


def without_secrets(address: str) -> str:
    """An address without a user, a password, and the values of its query and fragment.

    >>> without_secrets("https://me:secret@host/v1?api-version=2&api-key=secret#key=secret")
    'https://…@host/v1?api-version=2&api-key=…#key=…'
    >>> without_secrets("me:secret@host/v1?secret")
    '…@host/v1?…'
    """
    address = re.sub(r"^((?:[A-Za-z][\w+.-]*:?)?//)?.*@", r"\1…@", address, flags=re.DOTALL)
    return _PARTS.sub(_shown, address)


def _shown(part: re.Match[str]) -> str:
    mark, name, equals, value = part.groups()
    if not equals:
        return f"{mark}…" if name or value else mark
    return part[0] if name in _PUBLIC else f"{mark}{name}=…"


def secret_patterns(url: SplitResult) -> list[str]:
    """Regular expressions for the secrets of an address, in all forms in which it may be quoted."""
    patterns = []
    for _, name, equals, value in _PARTS.findall(f"?{url.query}#{url.fragment}"):
        if equals and value and name not in _PUBLIC:
            patterns.append(rf"(?<={re.escape(name)}=){pattern_of(unquote(value))}(?!\w)")
        patterns += _patterns([value if equals else f"{name}{value}"] if name not in _PUBLIC else [])
    user, _, password = url.netloc.rpartition("@")[0].partition(":")
    if user or password:
        plain = f"{unquote(user)}:{unquote(password)}"
        patterns += [rf"{pattern_of(plain)}(?=@)", *_patterns([user, password])]
        patterns += [re.escape(b64encode(plain.encode(code, "replace")).decode()) for code in ("utf-8", "latin-1")]
    return patterns


def _patterns(values: list[str]) -> list[str]:
    return [pattern_of(unquote(value)) for value in values if len(unquote(value)) >= SHORTEST_SECRET]


def pattern_of(secret: str) -> str:
    """A regular expression for a text whose marks may be written as `%2F` or `\\/`."""
    return "".join(
        each if each.isalnum() and each.isascii() else rf"(?:\\?{re.escape(each)}|(?i:{quote(each, safe='')}))"
        for each in secret
    )
