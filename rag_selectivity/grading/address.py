"""The secrets of an endpoint: those of its address, its key and its headers, and texts without them."""

import logging
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import SplitResult, unquote

#: Parameters of an address and headers that everybody may read.
_PUBLIC = ("api-version", "content-type", "accept", "user-agent")
#: A shorter value, such as a version, may occur in any text; it is a secret behind its name alone.
_SHORTEST = 6
#: A shorter secret that is a word or a number may belong to an answer.
_SURE = 16
_MIXED = re.compile(r"(?=\S*\d)(?=\S*[^\W\d])\S{6,}")
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


class Secrets:
    """What no message, store or report may show of a key, of headers and of an address, in any form.

    >>> from urllib.parse import urlsplit
    >>> secrets = Secrets("a1b2c3/d4", {"x-key": "ollama"}, urlsplit("http://localhost/v1?sig=abc123"))
    >>> secrets.taken_out("a1b2c3%2Fd4, ollama, sig=abc123"), secrets.taken_out_of_body("a1b2c3\\\\/d4, ollama")
    ('…, …, sig=…', '…, ollama')
    """

    def __init__(self, key: str, headers: Mapping[str, str], address: SplitResult) -> None:
        given = [key, *(value for name, value in headers.items() if name.lower() not in _PUBLIC)]
        # `Bearer KEY`: an endpoint may quote the key without its scheme.
        values = [*given, *(value.partition(" ")[2].strip() for value in given)]
        behind_names = []
        for _, name, equals, value in _PARTS.findall(f"?{address.query}#{address.fragment}"):
            if name in _PUBLIC:
                continue
            values.append(unquote(value if equals else name))
            if equals and value:
                behind_names.append(rf"(?<={re.escape(name)}=){_in_any_form(unquote(value))}(?!\w)")
        user, _, password = address.netloc.rpartition("@")[0].partition(":")
        if user or password:
            plain = f"{unquote(user)}:{unquote(password)}"
            behind_names.append(rf"{_in_any_form(plain)}(?=@)")
            encoded = (b64encode(plain.encode(code, "replace")).decode() for code in ("utf-8", "latin-1"))
            values += [unquote(user), unquote(password), *encoded]
        secrets = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
        sure = [each for each in secrets if len(each) >= _SURE or _MIXED.fullmatch(each)]
        starts = {"\\", "%", ":", *(value[0] for value in values if value)}
        self._all = _any_of([*map(_in_any_form, secrets), *behind_names], starts)
        self._sure = _any_of(list(map(_in_any_form, sure)), starts)

    def taken_out(self, text: str) -> str:
        """A message without secrets, and without what looks like a key."""
        text = self._all.sub("…", text)
        return re.sub(r"\b(sk|Bearer)[-_ ][\w*.\-]{4,}", r"\1-…", text) if "sk-" in text or "Bearer" in text else text

    def taken_out_of_body(self, text: str) -> str:
        """A body without the secrets that it quotes.

        What merely looks like a key stays, since it may belong to the answer. So does a short word or number, such as
        the dummy key "ollama".
        """
        return self._sure.sub("…", text)

    def clean(self, record: logging.LogRecord) -> bool:
        """Take the secrets out of a record of a log, as a filter of its logger."""
        record.msg, record.args = self.taken_out(record.getMessage()), ()
        return True


def _in_any_form(secret: str) -> str:
    r"""A regular expression for a text whose characters may be written as `%2F`, `\/` or `\u002f`."""
    forms = []
    for each in secret:
        quoted = "".join(f"%{byte:02x}" for byte in each.encode("utf-8", "replace"))
        forms.append(rf"(?:\\{{0,4}}{re.escape(each)}|(?i:\\{{1,4}}u{ord(each):04x}|{quoted}))")
    return "".join(forms)


def _any_of(patterns: Sequence[str], starts: Iterable[str]) -> re.Pattern[str]:
    """What matches any of the patterns; `starts` are the characters that they can begin with."""
    return re.compile(f"(?=[{''.join(map(re.escape, starts))}])(?:{'|'.join(patterns)})" if patterns else r"(?!)")
