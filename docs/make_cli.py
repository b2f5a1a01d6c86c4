"""Writes `cli.md` from the commands themselves: run it after changing one.

python docs/make_cli.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from rag_selectivity.cli import Format, app

#: Of each command a sentence on when to use it, and a worked example on files such as a user has.
EXAMPLES = {
    "evaluate": (
        "The first command to try: labels and a run in, figures with intervals out.",
        "evaluate --qrels grades.trec --run bm25.trec --pool candidates.trec --corpus-size 50 --scale utility \\\n"
        "      --depths 1,3 --measure BoR --measure RA-nWG --measure PROC --measure %PROC --measure Harm",
    ),
    "compare": (
        "Two or more systems on the same queries.",
        "compare --qrels qrels.trec --run bm25.trec --run dense.trec --baseline bm25 --corpus-size 50 \\\n"
        "      --depths 1,3",
    ),
    "sweep": (
        "Which K to choose, within a budget of tokens.",
        "sweep --qrels qrels.trec --run bm25.trec --corpus-size 50 --tokens tokens.csv --max-tokens 300",
    ),
    "report": (
        "One file to look at, to send and to print.",
        "report --qrels grades.trec --run bm25.trec --run dense.trec --scale utility --corpus corpus.jsonl \\\n"
        "      --queries queries.jsonl -o report.html",
    ),
    "grade": (
        "Labels from a model, for every passage of one or more runs. The key is read from `OPENAI_API_KEY`.",
        "grade --queries queries.jsonl --corpus corpus.jsonl --pool bm25.trec --pool dense.trec \\\n"
        "      --store new.db --model gpt-5-mini --max-calls 500 --concurrency 4",
    ),
    "claims": (
        "Passages held against reference answers. The key is read from `OPENAI_API_KEY`.",
        "claims --samples samples.jsonl --store claims.db --model gpt-5-mini --depths 1,3",
    ),
    "agree": (
        "People's labels beside the judge's.",
        "agree --human human.qrels --labels labels.db",
    ),
    "store info": ("What a label store holds.", "store info labels.db"),
    "store export": (
        "As qrels for other tools, or with reasons and costs as a table.",
        "store export labels.db labels.jsonl",
    ),
    "store import": (
        "People's labels into a store, old or new.",
        "store import people.db human.qrels --annotator ada",
    ),
    "plan": (
        "Before there is a run: N and R are enough.",
        "plan --corpus-size 58 --relevant 4 --depths 5,20,58 --min-ceiling 1 --tokens-per-item 180",
    ),
    "audit": ("When there are only counts: a row for each query with N, K, R and hit.", "audit log.csv"),
    "measures": ("The list without a name, one definition with it.", "measures BoR"),
    "demo": ("Offline, without a key; it takes a few seconds.", "demo --output demo"),
}
#: What the examples read, as the test makes it.
FILES = {
    "`qrels.trec`": "labels 0 and 1",
    "`grades.trec`": "labels 1 to 5",
    "`bm25.trec`, `dense.trec`": "two runs",
    "`candidates.trec`": "the candidates before reranking, a run too",
    "`queries.jsonl`, `corpus.jsonl`": "texts, with `_id` and `text`",
    "`human.qrels`": "labels 1 to 5 by people, for a part of the same pairs",
    "`graded03.trec`": "labels 0 to 3, as TREC has them",
    "`labels.csv`, `labels.jsonl`, `labels.parquet`, `beir`": "`grades.trec` in other formats",
    "`sample.trec`": "labels of passages drawn at random from outside of the others",
    "`tokens.csv`, `clusters.csv`": "lengths (`passage_id,tokens`); queries that belong together (`query_id,cluster`)",
    "`labels.db`": "a label store, filled by a judge",
    "`support-desk.toml`": "a rubric of your own",
    "`trace.jsonl`": "live retrievals, with their texts",
    "`before.json`": "a report that was saved",
    "`samples.jsonl`": "questions, retrieved texts and reference answers, in Ragas' field names",
    "`log.csv`": "a log of counts: `N,K,R,hit`",
}
#: For options that say nothing of themselves.
MEANINGS = {
    "seed": "Of everything drawn at random.",
    "level": "Of the intervals.",
    "max_calls": "Stop after so many calls.",
    "max_tokens": "Stop after so many tokens.",
}


def reference() -> str:
    """All commands as Markdown."""
    known = dict(_commands(typer.main.get_command(app), ()))
    if known.keys() != EXAMPLES.keys():
        raise SystemExit(f"EXAMPLES and the commands differ: {', '.join(known.keys() ^ EXAMPLES.keys())}")
    commands = [(name, known[name]) for name in EXAMPLES]
    lines = [
        "# The command line",
        "",
        "Made from the commands themselves by `docs/make_cli.py`: change those, and run it.",
        "",
        "| command | what it does |",
        "|---|---|",
        *(f"| [`{name}`](#{name.replace(' ', '-')}) | {_sentence(command.help)} |" for name, command in commands),
        "",
        "Exit status: 0 for success, 1 where a gate closed or grading did not end well, 2 for a mistake in the input,",
        "130 after Ctrl-C. `--install-completion` completes commands and options in your shell.",
        f"`--format` takes {', '.join(Format)}, as far as a command has them; `-o` takes the format from the suffix.",
        "Results go to the standard output, warnings to the standard error.",
        "",
        "The examples here and on the other pages read these files:",
        "",
        "| file | what it holds |",
        "|---|---|",
        *(f"| {file} | {content} |" for file, content in FILES.items()),
    ]
    for name, command in commands:
        when, example = EXAMPLES[name]
        lines += ["", f"## {name}", "", _sentence(command.help), when, ""]
        lines += ["```console", f"$ rag-selectivity {example}", "```", ""]
        lines += ["| option | default | meaning |", "|---|---|---|"]
        lines += [
            _row(parameter)
            for parameter in command.params
            if parameter.name != "help" and not getattr(parameter, "hidden", False)
        ]
    return "\n".join(lines) + "\n"


def _commands(group: Any, above: tuple[str, ...]) -> list[tuple[str, Any]]:
    """(name, command) of all commands, those of groups under the name of the group."""
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
    opts = [*parameter.opts, *parameter.secondary_opts]
    names = ", ".join(f"`{name}`" for name in opts) if is_option else f"`{parameter.name.upper()}`"
    default = "needed" if parameter.required else _default(parameter.default)
    meaning = _sentence(getattr(parameter, "help", None)) or MEANINGS[parameter.name]
    return f"| {names} | {default} | {meaning.replace('|', chr(92) + '|')} |"


def _default(value: Any) -> str:
    """A default worth telling: none for what is off or not given, however the library beneath spells that."""
    told = isinstance(value, (str, int, float, Path)) and not isinstance(value, bool)
    return f"`{value}`" if told else ""


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference(), encoding="utf-8")
