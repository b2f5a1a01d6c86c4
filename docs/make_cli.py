"""Writes `cli.md` from the commands themselves: run it after changing one.

python docs/make_cli.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from rag_selectivity.cli import app

#: A worked example of each command, on files such as a user has.
EXAMPLES = {
    "evaluate": "evaluate --qrels grades.trec --run bm25.trec --corpus-size 50 --scale utility --depths 1,3",
    "compare": "compare --qrels grades.trec --run bm25.trec --run dense.trec --corpus-size 50 --depths 3",
    "sweep": "sweep --qrels qrels.trec --run bm25.trec --corpus-size 50",
    "report": "report --qrels grades.trec --run bm25.trec --corpus corpus.jsonl --queries queries.jsonl -o report.html",
    "grade": "grade --trace trace.jsonl --store judged.db --model some-model --price-in .25 --price-out 2",
    "claims": "claims --samples samples.jsonl --store claims.db --model any-model --depths 1,2",
    "agree": "agree --human human.qrels --labels labels.db",
    "store info": "store info labels.db",
    "store export": "store export labels.db labels.jsonl",
    "store import": "store import more.db human.qrels --annotator ada",
    "plan": "plan --corpus-size 58 --relevant 4 --depths 5,20,58",
    "audit": "audit log.csv",
    "measures": "measures BoR",
    "demo": "demo --output demo",
}


def reference() -> str:
    """All commands as Markdown."""
    lines = [
        "# The command line",
        "",
        "Made from the commands themselves by `docs/make_cli.py`. Exit status: 0 for success, 1 where a gate or a",
        "grading run failed, 2 for a mistake in the input, 130 after Ctrl-C. `--install-completion` completes commands",
        "and options in your shell.",
    ]
    for name, command in _commands(typer.main.get_command(app), ()):
        lines += ["", f"## {name}", "", _sentence(command.help), ""]
        lines += [
            "```console",
            f"$ rag-selectivity {EXAMPLES[name]}",
            "```",
            "",
            "| option | default | meaning |",
            "|---|---|---|",
        ]
        lines += [_row(parameter) for parameter in command.params if parameter.name != "help"]
    return "\n".join(lines) + "\n"


def _commands(group: Any, above: tuple[str, ...]) -> list[tuple[str, Any]]:
    found = []
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found += _commands(command, (*above, name))
        else:
            found.append((" ".join((*above, name)), command))
    return found


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = ", ".join(f"`{name}`" for name in parameter.opts) if is_option else f"`{parameter.name.upper()}`"
    default = "needed" if parameter.required else _default(parameter)
    meaning = _sentence(getattr(parameter, "help", None)).replace("|", "\\|")
    return f"| {names} | {default} | {meaning} |"


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or value == [] or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference(), encoding="utf-8")
