"""Which kinds try what users can give: every public name that takes something, and every file that a command reads."""

from __future__ import annotations

import rag_selectivity
from rag_selectivity import golden, online
from rag_selectivity.cli.app import all_commands
from rag_selectivity.cli.inputs import Readable

#: The kind that tries a public name, or why none does.
NAMES: dict[str, str] = {
    **dict.fromkeys(("evaluate", "compare", "sweep"), "call 1"),
    **dict.fromkeys(("Qrels", "Run"), "labels and runs"),
    **dict.fromkeys(("JudgedRun", "evaluate_joined", "join"), "joins"),
    **dict.fromkeys(("Bootstrap", "Budget", "Limits", "Policy", "agree", "bits", "plan", "queries_needed"), "numbers"),
    **dict.fromkeys(("Monitor", "Retrieval"), "one query"),
    **dict.fromkeys(("calibrate_alpha", "validate"), "scores"),
    **dict.fromkeys(("Measure", "parse_measure"), "measure"),
    "BackgroundGrader": "background grading",
    "Tally": "tally",
    "ToolMonitor": "tools",
    "audit": "log.csv",
    "check_claims": "claims",
    "grade": "grading",
    "measure_answers": "measured answers",
    "read_qrels": "labels.trec",
    "read_run": "run.trec",
    **dict.fromkeys(("GoldenSet", "Manifest", "diff", "export"), "golden version"),
    "build": "golden build",
    "check": "golden check",
    "import_set": "golden form",
    **dict.fromkeys(("GoldenQuery", "QuerySet", "queries"), "golden questions"),
    **dict.fromkeys(("Draft", "Impression", "Interleaver", "RecordLog", "citations", "credit"), "drafts"),
    **dict.fromkeys(("current_impression", "impression", "interleave", "shuffle"), "drafts"),
    **dict.fromkeys(("JoinedRecords", "citation_rates", "join_records", "preference"), "online rows"),
    **dict.fromkeys(("TwoArms", "compare_arms"), "two arms"),
    **dict.fromkeys(("Experiment", "Metric", "foretold"), "experiment"),
}
_RESULT, _PROGRAM = "a result, which the package makes", "a program's own code, or what it draws and computes with"
NOT_TRIED: dict[str, str] = {
    **dict.fromkeys(("Calibration", "Comparison", "Estimate", "JudgeReport", "Report", "Sweep", "Validation"), _RESULT),
    **dict.fromkeys(("Built", "ChangedLabel", "Check", "Difference", "Exported", "Finding", "GradeChange"), _RESULT),
    **dict.fromkeys(("ImportedSet", "LeftOut", "Reusability", "WeightChange"), _RESULT),
    **dict.fromkeys(("InputError", "MissingExtraError", "SelectivityError", "SelectivityWarning"), _RESULT),
    **dict.fromkeys(("Format", "register_format", "register_measure", "engines", "plots", "ray"), _PROGRAM),
}
#: The kind that tries what a command reads by a parameter of this name; a command comes first where it differs.
FILES: dict[str, str] = {
    "against": "report",
    "by": "slices",
    "claims against": "stored claims",
    "claims human": "claims",
    "claims references": "claims",
    "closed_book": "scores",
    "clusters": "small tables",
    "controls": "labels.trec",
    "corpus": "corpus",
    "corpus_size": "small tables",
    "costs": "costs",
    "exact": "run.trec",
    "experiments": "past experiments",
    "given": "given answers",
    "golden build qrels": "golden build",
    "golden queries source": "golden questions",
    "groups": "groups",
    "human": "store",
    "instructions": "small tables",
    "known": "labels.trec",
    "labels": "store",
    "log": "log.csv",
    "logs": "online log",
    "passages_of": "passages of documents",
    "pool": "run.trec",
    "qrels": "labels.trec",
    "quality": "small tables",
    "queries": "texts for slices",
    "records": "online records",
    "references": "references",
    "report": "report",
    "responses": "claims",
    "rows": "arms",
    "rubric": "rubric",
    "run": "run.trec",
    "samples": "claims",
    "scores": "scores",
    "store import source": "exported.jsonl",
    "tokens": "token lengths",
    "trace": "trace",
    "vectors": "golden questions",
    "weigh_positions": "shuffled orders",
    "weights": "weights",
}


def public_names() -> set[str]:
    """Every public name of the package, of golden sets and of online evaluation."""
    return {*rag_selectivity.__all__, *golden.__all__, *online.__all__}


def files_read() -> set[str]:
    """Every parameter of a command that names a file to read, by its key in `FILES`."""
    found = set()
    for command, loaded in all_commands().items():
        for parameter in loaded.params:
            if isinstance(parameter.metavar, Readable):
                own = f"{command} {parameter.name}"
                found.add(own if own in FILES else str(parameter.name))
    return found
