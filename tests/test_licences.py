"""The licences of what is installed are read as their metadata states them, and copyleft is found."""

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.contract

pytest.importorskip("packaging")

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / ".ci" / "licences.py"


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences_of_what_is_installed", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("licence", "kind"),
    [
        ("MIT", "permissive"),
        ("BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0", "permissive"),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", "MPL"),
        ("Apache-2.0 OR GPL-2.0-only", "permissive"),
        ("MIT AND (LGPL-2.1-or-later OR GPL-3.0-only)", "LGPL"),
        ("MIT OR (BSD-3-Clause AND GPL-3.0-only)", "permissive"),
        ("(MIT OR Apache-2.0) AND AGPL-3.0-only", "GPL or AGPL"),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", "permissive"),
        ("GNU Lesser General Public License v3", "LGPL"),
        ("GNU Affero General Public License v3", "GPL or AGPL"),
        ("LicenseRef-Proprietary", "not stated"),
        ("", "not stated"),
        ("Permission is hereby granted, free of charge,\n" + "x " * 900 + "unlike the GPL", "permissive"),
    ],
)
def test_copyleft_is_found(licences, licence: str, kind: str) -> None:
    assert licences.kind(licence) == kind


def environment(folder: Path, packages: dict[str, str]) -> Path:
    """Installed packages, as nothing but their metadata."""
    for name, metadata in packages.items():
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}", encoding="utf-8"
        )
    return folder


def listed(folder: Path, *extras: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, folder, *extras], capture_output=True, text=True, check=False)


OURS = 'Provides-Extra: more\nRequires-Dist: base\nRequires-Dist: added[own]; extra == "more"\n'
ADDED = 'License-Expression: MIT\nProvides-Extra: own\nRequires-Dist: deep; extra == "own"\n'
DEEP = "Classifier: License :: OSI Approved :: GNU Affero General Public License v3\n"


def test_what_an_extra_of_an_extra_requires_is_followed(tmp_path) -> None:
    packages = {"rag-selectivity": OURS, "base": "License: MIT\n", "added": ADDED, "deep": DEEP}
    done = listed(environment(tmp_path, packages), "core", "more")
    assert "core: 1 packages\n  base 1.0: MIT (permissive)\nmore: 3 packages\n" in done.stdout
    assert "deep 1.0: GNU Affero General Public License v3 (GPL or AGPL)" in done.stdout
    assert done.returncode == 1
    assert "deep of the extra more is not named in licences.md; its licence is GPL or AGPL" in done.stderr


@pytest.mark.parametrize("licence", ["License: LGPL-3.0\n", "License-Expression: MPL-2.0\n", ""])
def test_the_core_has_no_copyleft_and_nothing_unknown(tmp_path, licence: str) -> None:
    done = listed(environment(tmp_path, {"rag-selectivity": OURS, "base": licence}), "core")
    assert done.returncode == 1
    assert "the core requires base" in done.stderr


@pytest.mark.parametrize("extra", ["more", "unknown"])
def test_what_is_not_installed_is_not_passed_over(tmp_path, extra: str) -> None:
    done = listed(environment(tmp_path, {"rag-selectivity": OURS, "base": "License: MIT\n"}), extra)
    assert done.returncode == 1
    assert "not installed" in done.stderr or "not an extra" in done.stderr


def test_the_page_has_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lines = (ROOT / "docs" / "reference" / "licences.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split("`")[1] for line in lines if line.startswith("| `")}
    assert rows == {"core", *extras} - {"all", "dev", "site", "hosts"}
