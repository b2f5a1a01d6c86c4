"""Writes `reference/cli.md` from the commands themselves: run it after changing one.

python docs/make_cli.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

from rag_selectivity.cli.app import all_commands
from rag_selectivity.cli.command import EVERY_COMMAND
from rag_selectivity.cli.output import EXIT_CODES
from rag_selectivity.judged.policy import Policy

#: The commands in the order of the page.
COMMANDS = (
    "init",
    "evaluate",
    "answers",
    "validate",
    "online interleave",
    "online preference",
    "online compare",
    "grade",
    "claims",
    "labels info",
    "labels export",
    "labels import",
    "labels agree",
    "labels draw",
    "golden build",
    "golden check",
    "golden diff",
    "golden export",
    "plan",
    "explain",
    "demo",
)
#: The settings that another page defines, with all options of a policy.
POLICY = {f"rules.{each.name}" for each in fields(Policy)}
#: What the help of an option says that can be given several times.
REPEATED = " Repeat for more."


def reference() -> str:
    """All commands as Markdown."""
    known = all_commands()
    if known.keys() != set(COMMANDS):
        raise SystemExit(f"COMMANDS and the commands differ: {', '.join(known.keys() ^ set(COMMANDS))}")
    shared = _shared(known)
    paragraphs = Counter(text for name in COMMANDS for text in _paragraphs(known[name]))
    of_several = [text for text, count in paragraphs.items() if count > 1]
    lines = [
        "# The command line",
        "",
        "Made from the commands themselves by `docs/make_cli.py`: change those, and run it.",
        "",
        "## All commands",
        "",
        "| exit code | meaning |",
        "|---|---|",
        *(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()),
        "",
        "A bug exits with 2. A command whose reader stops early exits with 1.",
        "",
        "Results go to standard output; warnings, notes, progress and errors go to standard error. With",
        "`RAG_SELECTIVITY_DEBUG=1` in the environment an error shows its traceback.",
        "",
        *(_row(each) for each in known["evaluate"].params if _is_common(each)),
        "- `--help`: Show the options that people use, and two examples for the folder of `demo --write try`.",
        "",
        "`rag-selectivity --version` shows the version; `--install-completion` completes commands and options in your",
        "shell.",
        "",
        "A file can be `-`: standard input (for one file), or standard output. A label store cannot, since SQLite",
        "needs a file. The suffix of `--output`, the file to write, sets the format; `--format` overrides it.",
        "",
        "## Options of several commands",
        "",
        *of_several,
        "",
        *shared,
        "",
        "## selectivity.toml",
        "",
        "A command reads it in the working folder, or where `--config` says. The labels and the runs are `qrels` and",
        "`runs` below `[data]`. An option has its key (`corpus_size = 1000`) in the section of its heading in",
        "`--help-all`, Measures in `[data]`, Budget in `[judge]`, but none under Tests, Number of queries and Output.",
        "The command line wins. These have only a key, which `-c rules.order=rank` gives on the command line:",
        "",
        *(f"- `{key}`: {meaning}" for key, meaning in sorted(_keys(known).items()) if key not in POLICY),
        f"- {', '.join(f'`{key}`' for key in sorted(POLICY & set(_keys(known))))}: see",
        "  [At the edges](numbers.md#at-the-edges).",
    ]
    for name in COMMANDS:
        command = known[name]
        rows = [_row(each) for each in _listed(command)]
        own, others = [row for row in rows if row not in shared], [row for row in rows if row in shared]
        lines += ["", f"## {name}", "", *(text for text in _paragraphs(command) if text not in of_several)]
        lines += ["", *own] if own else []
        if others:
            names = ", ".join(map(_name, others))
            lines += ["", f"[Shared](#options-of-several-commands): {names}."]
    return "\n".join(lines) + "\n"


def _shared(known: dict[str, Any]) -> list[str]:
    """The rows that several commands have; of one option with several meanings, that of the most commands."""
    commands = Counter(row for name in COMMANDS for row in dict.fromkeys(map(_row, _listed(known[name]))))
    often = {_name(row): row for row, count in reversed(commands.most_common()) if count > 1}
    return sorted(often.values(), key=lambda row: row.lower().replace("`", ""))


def _listed(command: Any) -> list[Any]:
    return [each for each in command.params if not _is_common(each) and not getattr(each, "hidden", False)]


def _keys(known: dict[str, Any]) -> dict[str, str]:
    """{key: meaning} of what only the settings can say."""
    return {
        f"{each.meaning.section}.{each.name}": each.meaning.help
        for command in known.values()
        for each in command.settings
    }


def _paragraphs(command: Any) -> list[str]:
    """Its help, the purpose first."""
    return [" ".join(part.split()) for part in command.help.split("\n\n")]


def _is_common(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == EVERY_COMMAND


def _row(parameter: Any) -> str:
    default = " (needed)" if parameter.required else _default(parameter.default)
    repeated = " (repeatable)" if REPEATED in parameter.help else ""
    return f"- {_names(parameter)}{default}{repeated}: {_meaning(parameter)}"


def _name(row: str) -> str:
    """The first name of a row."""
    return f"`{row.split('`')[1]}`"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return ", ".join(f"`{name}`" for name in parameter.opts)
    return f"`{parameter.metavar}`"


def _meaning(parameter: Any) -> str:
    """Its help, without what holds for all."""
    text = " ".join(parameter.help.split()).replace(REPEATED, "")
    of_results = {"--output": ("File to write: ", " Default: standard output."), "--format": ("Format: ", " (default)")}
    for everywhere in of_results.get(parameter.opts[0], ()):
        text = text.replace(everywhere, "")
    return text


def _default(value: Any) -> str:
    """A default worth telling: none for what is off or not given, however the library beneath spells that."""
    told = isinstance(value, (str, int, float, Path)) and not isinstance(value, bool)
    return f" (default `{value}`)" if told else ""


if __name__ == "__main__":
    (Path(__file__).parent / "reference" / "cli.md").write_text(reference(), encoding="utf-8")
