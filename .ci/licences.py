"""List the licences of what an extra installs, from the metadata of installed packages; `nox -s extras` calls it.

It fails if a package of the core has a copyleft licence or states none, and if an extra brings a copyleft licence that
docs/reference/licences.md does not name. `--write` writes that page.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import Distribution, distributions
from itertools import takewhile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "rag-selectivity"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "licences.md"

#: From the mildest to the strictest; the order decides what `AND` and `OR` come to.
PERMISSIVE, MPL, LGPL, GPL, UNKNOWN = "permissive", "MPL", "LGPL", "GPL or AGPL", "not stated"
KINDS = (PERMISSIVE, MPL, LGPL, GPL, UNKNOWN)
PATTERNS = {
    LGPL: r"LGPL|lesser general public|library general public",
    GPL: r"GPL|general public licen[sc]e|SSPL|OSL-",
    MPL: r"MPL|mozilla public|EPL-|eclipse public|CDDL",
    PERMISSIVE: r"MIT|BSD|Apache|PSF|Python Software|ISC|Zlib|CC0|Unlicen[sc]e|Public Domain|HPND|CNRI|Boost|BSL-1|"
    r"Blue ?Oak|Academic Free|Permission is hereby granted|Redistribution and use in source and binary",
}

HEAD = """# Licences

rag-selectivity is under the MIT licence; the texts of its sample are under the PSF licence. With the core and with each
extra come these packages, required directly or not; the versions are the newest for {system}.
`nox -s extras` lists each with its licence, and `nox -s extras -- --write` writes this page.

All but those that are named are permissive (MIT, BSD, Apache and the like). MPL: copyleft for the files of the package
itself, when changed files are passed on.

The licence is the one that the metadata of the package states; of several by `OR`, the mildest counts. The wheels of
NumPy and SciPy also hold the runtime libraries of GCC, under the GPL with an exception for programs of any licence.

| extra | packages | not permissive |
|---|---|---|
"""


def stated(package: Distribution) -> str:
    """The licence that a package states, or an empty text."""
    expression = package.metadata.get("License-Expression")
    if expression:
        return expression
    # Several classifiers may mean all of them or a choice; `AND` is the stricter reading.
    listed = [line for line in package.metadata.get_all("Classifier", []) if line.startswith("License ::")]
    names = [line.split("::")[-1].split("(")[0].strip() for line in listed if not line.endswith("OSI Approved")]
    if names:
        return " AND ".join(names)
    field = (package.metadata.get("License") or "").strip()
    if field and field != "UNKNOWN":
        return field
    for file in package.files or ():
        if re.search(r"licen[sc]e|copying", file.name, flags=re.I) and file.locate().is_file():
            return file.read_text(encoding="utf-8")
    return ""


def kind(licence: str) -> str:
    """The kind of an SPDX expression, of the name of a licence, or of its text."""
    if "\n" in licence or len(licence) > 200:
        # A text that mentions the GPL in passing is not under it: what counts is how it begins.
        return kind_of_one(" ".join(licence.split())[:400])
    tokens = re.findall(r"\bAND\b|\bOR\b|[()]|(?:(?!\bAND\b|\bOR\b)[^()])+", licence)
    return alternatives([token.strip() for token in tokens if token.strip()])


def alternatives(tokens: list[str]) -> str:
    """The mildest of what `OR` parts; consumes the tokens up to the bracket that closes."""
    found = [together(tokens)]
    while tokens and tokens[0] == "OR":
        tokens.pop(0)
        found.append(together(tokens))
    return min(found, key=KINDS.index)


def together(tokens: list[str]) -> str:
    """The strictest of what `AND` joins."""
    found = []
    while tokens and tokens[0] not in ("OR", ")"):
        token = tokens.pop(0)
        if token == "(":
            found.append(alternatives(tokens))
            tokens[:1] = []  # the bracket that closes
        elif token != "AND":
            found.append(kind_of_one(token))
    return max(found, key=KINDS.index, default=UNKNOWN)


def kind_of_one(licence: str) -> str:
    """The kind of one licence; an exception, such as that of GCC's runtime, lifts what the licence demands of users."""
    if re.search(r" WITH \S*exception", licence, flags=re.I):
        return PERMISSIVE
    return next((kind for kind, pattern in PATTERNS.items() if re.search(pattern, licence, flags=re.I)), UNKNOWN)


def required(extra: str, installed: dict[str, Distribution]) -> dict[str, Distribution]:
    """All packages that the core (`core`) or an extra requires, directly or not, without rag-selectivity itself."""
    if extra not in ("core", *installed[PROJECT].metadata.get_all("Provides-Extra", [])):
        raise SystemExit(f"{extra} is not an extra of the {PROJECT} that is installed")
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    ahead = [(PROJECT, "" if extra == "core" else extra)]
    while ahead:
        name, chosen = ahead.pop()
        if (name, chosen) in seen:
            continue
        seen.add((name, chosen))
        if name not in installed:
            raise SystemExit(f"{name} is required by {extra}, but is not installed")
        if name != PROJECT:
            found[name] = installed[name]
        for line in installed[name].requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": chosen}):
                other = canonicalize_name(requirement.name)
                ahead += [(other, each) for each in ("", *requirement.extras)]
    return dict(sorted(found.items()))


def row_of(extra: str, kinds: dict[str, str]) -> str:
    """One line of the page: how many packages there are, and which are not permissive."""
    named = ", ".join(f"`{name}` ({kind})" for name, kind in kinds.items() if kind != PERMISSIVE)
    return f"| `{extra}` | {len(kinds)} | {named or '–'} |\n"


def named_on_page(extra: str) -> set[str]:
    """The packages that the page names in the line of an extra."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith(f"| `{extra}` |")]
    return {name for line in lines for name in re.findall(r"`([^`]+)`", line)} - {extra}


def shown(licence: str) -> str:
    """The licence in one line."""
    text = " ".join(" ".join(takewhile(str.strip, licence.strip().splitlines())).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def main() -> None:
    """List the licences of extras, and judge them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="the site-packages in which they are installed")
    parser.add_argument("extras", nargs="+", help="extras, and `core`")
    parser.add_argument("--write", action="store_true", help="write the page")
    arguments = parser.parse_args()
    packages = list(distributions(path=[arguments.folder]))
    installed = {canonicalize_name(each.metadata["Name"]): each for each in packages}
    rows, problems = [], []
    for extra in arguments.extras:
        licences = {name: stated(package) for name, package in required(extra, installed).items()}
        kinds = {name: kind(licence) for name, licence in licences.items()}
        rows.append(row_of(extra, kinds))
        print(f"{extra}: {len(kinds)} packages")
        for name, licence in licences.items():
            print(f"  {name} {installed[name].version}: {shown(licence) or UNKNOWN} ({kinds[name]})")
        noted = named_on_page(extra)
        for name, found in kinds.items():
            if extra == "core" and found != PERMISSIVE:
                problems.append(f"the core requires {name}, whose licence is {found}: {shown(licences[name])}")
            elif found != PERMISSIVE and name not in noted and not arguments.write:
                problems.append(f"{name} of the extra {extra} is not named in {PAGE.name}; its licence is {found}")
    if arguments.write:
        system = f"Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform.capitalize()}"
        PAGE.write_text(HEAD.format(system=system) + "".join(rows), encoding="utf-8")
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
