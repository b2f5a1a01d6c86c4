"""Every check of the project: `nox` runs them all, `nox -s lint` one of them.

`.ci/run` and the workflows in `.github/` call these sessions and decide nothing by themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nox
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv"

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
#: The lowest versions have no wheels for later ones.
LOWEST_PYTHON = "3.11"
LATER_PYTHONS = ("3.12", "3.13", "3.14")
#: Frameworks call home unless they are told not to, and wait where nobody answers.
QUIET = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "MLFLOW_DISABLE_TELEMETRY": "true", "RAGAS_DO_NOT_TRACK": "true"}
BUILT = tempfile.TemporaryDirectory(prefix="rag-selectivity-wheel-")
#: A file's tests stay together, since they share what they set up; some wait for servers, so that three fill two cores.
IN_PARALLEL = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint the code, hold the layers of its imports, validate what GitHub reads."""
    session.install(*dev_tools("ruff", "import-linter", "check-jsonschema"))
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "integrations")])})
    for schema, pattern in (
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("citation-file-format", "CITATION.cff"),
    ):
        files = sorted(map(str, ROOT.glob(pattern)))
        session.run("check-jsonschema", "--default-filetype", "yaml", "--builtin-schema", f"vendor.{schema}", *files)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    session.install("--editable", ".[all,dev]")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests and, from Python 3.12 on, show which lines they reach; `-- -m "not slow"` runs the quick ones."""
    install_everything(session)
    monitored = session.run("python", "-c", "import sys; print(hasattr(sys, 'monitoring'))", silent=True)
    if str(monitored).strip() == "True":
        # The second option keeps the first from taking a file that is named for its own argument.
        measured = ("--cov", "--cov-report=term")
        session.run("pytest", *IN_PARALLEL, *measured, *session.posargs, env={"COVERAGE_CORE": "sysmon"})
    else:
        # Python 3.11 measures coverage by tracing every line, which takes longer than the tests themselves.
        session.run("pytest", *IN_PARALLEL, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Run what the README, the pages of `docs/` and the examples show; the command reference must be up to date."""
    install_everything(session)
    pages = ("tests/test_docs.py", "tests/test_readme.py", "tests/test_examples.py")
    session.run("pytest", *IN_PARALLEL, *pages, *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Build the site of `docs/` without network, every warning an error, and check what was built."""
    install_everything(session)
    built = ROOT / "docs" / "_build" / "html"
    session.run("python", "-m", "sphinx", "-E", "-W", "--keep-going", "-q", "-b", "html", "docs", str(built))
    session.run("pytest", "tests/test_site.py", *session.posargs, env={"RAG_SELECTIVITY_SITE": str(built)})


@nox.session(venv_backend="venv")
def readme(session: nox.Session) -> None:
    """Install as the README does, by the pip that this Python came with; run the README, and find all tests."""
    session.install("--editable", ".[all,dev]")
    session.run("pytest", "tests/test_readme.py", *session.posargs)
    session.run("pytest", "--collect-only", "--quiet", "--quiet")


@dataclass(frozen=True)
class Bearing:
    """The tests that bear on an extra; before them `.ci/smoke` uses it without any test tool installed."""

    files: str
    #: pytest's `-k`: some tests of these files need another extra as well.
    choice: str = ""
    #: What the tests themselves import besides pytest and hypothesis.
    imports: tuple[str, ...] = ()


BEARING = {
    "core": Bearing(
        "bootstrap calibrated_figures comparison controls designs edges import "
        "measure_examples names paired placebo joins trec_lines unpaired",
        "not plan_says and not docs and not drawn_once and not any_order and not held_out "
        "and not settle and not guesses and not below_the_pool and not verdict_the_interval",
    ),
    "files": Bearing("readers large_files joins"),
    "cli": Bearing("cli planning", "not parquet"),
    "report": Bearing("html html_edges annotation_page", "not command"),
    "demo": Bearing(""),
    "judge": Bearing(
        "grading claims store store_writing store_reading injection draws annotation",
        "not (command or key_is_asked or parquet)",
    ),
    "ragas": Bearing("ragas adapters adapter_judges", "ragas"),
    "llama-index": Bearing(
        "llama_index llama_index_judging llama_index_retrieval adapters adapter_judges", "llama", ("openai",)
    ),
    "langchain": Bearing(
        "langchain tool_selection adapters adapter_judges",
        "langchain or tool_selection",
        ("llama-index-core", "openai"),
    ),
    "otel": Bearing(
        "spans",
        "not (langchain or llama or figures_as_metrics or conventions)",
        ("opentelemetry-exporter-otlp-proto-common<1.21",),  # that of the lowest SDK
    ),
    "mcp": Bearing("mcp"),
    "mlflow": Bearing(""),
    "deepeval": Bearing(""),
    "pytest": Bearing(""),
    "ir-measures": Bearing("ir_measures", "not pyterrier"),
}


@nox.session
def extras(session: nox.Session) -> None:
    """Use all extras with the newest versions; `-- --write` writes docs/reference/licences.md."""
    names = [extra for extra in BEARING if extra != "core"]
    session.install(f"{wheel(session)}[{','.join(names)}]")
    # By the Python of nox, which has `packaging`.
    where = str(session.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", silent=True))
    licences = (str(ROOT / ".ci" / "licences.py"), where.strip(), *BEARING, *session.posargs)
    session.run(sys.executable, *licences, external=True)
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
        use(session, "installed", *names)


@nox.session(python=LOWEST_PYTHON)
@nox.parametrize("extra", [nox.param(extra, id=extra) for extra in BEARING])
def lowest(session: nox.Session, extra: str) -> None:
    """Use the core, and each extra by itself, with the lowest versions that pyproject.toml declares."""
    choice = () if extra == "core" else ("--extra", extra)
    session.install("--resolution", "lowest-direct", "--requirements", "pyproject.toml", *choice)
    chosen = str(session.run("uv", "pip", "freeze", silent=True, stderr=subprocess.DEVNULL))
    installed = {name: Version(version) for name, version in (line.split("==") for line in chosen.splitlines())}
    for name, bound in lowest_versions(extra).items():
        if installed[name] != bound:
            session.error(f"{name}: {bound} is declared, but the lowest that fits the others is {installed[name]}")
    session.install("--no-deps", str(wheel(session)))
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
        use(session, "installed", extra)
        bearing = BEARING[extra]
        if bearing.files:
            Path("chosen.txt").write_text(chosen, encoding="utf-8")
            session.install("--constraints", "chosen.txt", *dev_tools("pytest", "hypothesis"), *bearing.imports)
            shutil.copy(ROOT / "pyproject.toml", ".")
            shutil.copytree(ROOT / "tests", "tests", ignore=shutil.ignore_patterns("__pycache__"))
            files = [f"tests/test_{file}.py" for file in bearing.files.split()]
            session.run("python", "-m", "pytest", "--disable-warnings", "-m", "not slow", "-k", bearing.choice, *files)
    shutil.rmtree(session.virtualenv.location)  # these environments take gigabytes


def python_on_this_machine(version: str) -> str | None:
    """Find an interpreter on the path, or one that pyenv or uv keeps aside; pyenv's shims may lead nowhere."""
    folders = [folder for folder in os.get_exec_path() if not folder.endswith(os.sep + "shims")]
    found = shutil.which(f"python{version}", path=os.pathsep.join(folders))
    if found:
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = [
        *pyenv.glob(f"versions/{version}.*/bin/python{version}"),
        *Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"),
    ]
    return str(kept[0]) if kept else None


@nox.session
@nox.parametrize("python", [nox.param(python_on_this_machine(each) or False, id=each) for each in LATER_PYTHONS])
def pythons(session: nox.Session) -> None:
    """Use the core and the lightest extras in each Python of this machine that `lowest` does not use."""
    if session.python is False:
        session.skip("there is no such Python on this machine")
    light = ("cli", "files", "judge")
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
        session.install(str(wheel(session)))
        use(session, "installed", "core")
        session.install(f"{wheel(session)}[{','.join(light)}]")
        use(session, *light)


# -- what the sessions share ------------------------------------------------------------------------


def dev_tools(*names: str) -> list[str]:
    """Requirements of the extra `dev`, by name."""
    listed = {canonicalize_name(Requirement(line).name): line for line in EXTRAS["dev"]}
    return [listed[name] for name in names]


def install_everything(session: nox.Session) -> None:
    """Install what tests need; NLTK, with which LlamaIndex splits texts, refuses files that are hard links."""
    needed = ("--editable", ".[all,dev,site,hosts]")
    copied = ("--reinstall-package", "nltk", "--reinstall-package", "llama-index-core")
    session.install(*needed)
    session.install(*copied, *needed, env={"UV_LINK_MODE": "copy"})


def wheel(session: nox.Session) -> Path:
    """Build the wheel, from the source distribution, once for all legs that `.ci/run` starts or that nox runs."""
    folder = Path(os.environ.setdefault("RAG_SELECTIVITY_WHEEL", BUILT.name))
    if not any(folder.glob("*.whl")):
        session.run("uv", "build", "--quiet", "--out-dir", str(folder), str(ROOT))
    (built,) = folder.glob("*.whl")
    return built


def use(session: nox.Session, *names: str) -> None:
    """Run scripts in `.ci/smoke`: what was installed is what is used, and does what an extra is for."""
    for name in names:
        session.run("python", "-P", str(ROOT / ".ci" / "smoke" / f"{name}.py"), env={"PYTHONPATH": "", **QUIET})


def lowest_versions(extra: str) -> dict[str, Version]:
    """Return the lower bounds that pyproject.toml declares for the core or for an extra."""
    bounds: dict[str, Version] = {}
    for line in PROJECT["dependencies"] if extra == "core" else EXTRAS[extra]:
        requirement = Requirement(line)
        if requirement.name == PROJECT["name"]:
            for other in requirement.extras:
                bounds |= lowest_versions(other)
        else:
            (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
            bounds[canonicalize_name(requirement.name)] = Version(bound)
    return bounds
