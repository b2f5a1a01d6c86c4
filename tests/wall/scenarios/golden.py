"""Golden sets: made, checked, compared and exported by the command line."""

import json
from pathlib import Path

import rag_selectivity as rs
from tests.wall import keys, worlds

WORLD = worlds.small(queries=12)


def _built(*more):
    """Two versions of a set: in the second, a grade changed and a query went."""
    corpus = worlds.jsonl("corpus.jsonl", ({"_id": f"d{n:03}", "text": f"passage {n}"} for n in range(500)))
    for version, labels in enumerate((WORLD.labels, _later()), 1):
        texts = (
            {"query_id": q, "text": f"question {q}, {(ord(q[-1]) * 37) % 101} of {n * n}"} for n, q in enumerate(labels)
        )
        queries = worlds.jsonl(f"queries{version}.jsonl", texts)
        qrels = worlds.trec(f"qrels{version}.trec", labels)
        given = ["--qrels", qrels, "--queries", queries, "--corpus", corpus, "--annotator", "ada", "--licence", "MIT"]
        worlds.done("golden", "build", "faq", *given, "--date", f"2026-01-0{version}T00:00:00Z", *more)


def _later():
    labels = {query: dict(row) for query, row in WORLD.labels.items() if query != "q11"}
    first = next(iter(labels["q00"]))
    return {**labels, "q00": {**labels["q00"], first: 6 - labels["q00"][first]}}


def build():
    _built()
    found = {}
    for version in (1, 2):
        manifest = json.loads(Path(f"faq/v{version}/manifest.json").read_text(encoding="utf-8"))
        found |= keys.plain(manifest, f"v{version}", "name", "version", "labels", "people", "licence", "corpus")
        found[f"v{version}/queries"] = manifest["queries"]["count"]
    return found


def measured():
    _built()
    options = {"corpus_size": 500, "scale": "utility", "measures": ["BoR", "RA-nWG", "Harm"], "depths": [5]}
    found = {version: rs.evaluate(f"faq/{version}", WORLD.runs, **options) for version in ("v1", "v2")}
    return {key: value for version, report in found.items() for key, value in keys.report(report, version).items()}


def check():
    _built()
    runs = [worlds.trec(f"{name}.trec", run) for name, run in WORLD.runs.items()]
    found = worlds.told("golden", "check", "faq/v1", *runs, "--depths", "5,10")
    codes = {f"finding/{each['code']}": each["count"] for each in found["findings"]}
    runs = found["reusability"]["runs"]
    rows = [(run["run"], name, run["shifts"][name], run["tau"][name]) for run in runs for name in run["figures"]]
    run, name, shift, _ = max(rows, key=lambda row: abs(row[2]))
    last, measure, _, tau = min(rows, key=lambda row: row[3])
    reusability = found["reusability"] | {"runs": {run["run"]: _left_out(run) for run in runs}}
    reusability["largest_shift"] = {"run": run, "measure": name, "shift": shift}
    reusability["lowest_tau"] = {"run": last, "measure": measure, "tau": tau}
    return codes | keys.plain({**found, "reusability": reusability}, "check", "passed", "judged", "reusability")


def _left_out(run):
    names = {
        "value": "figures",
        "without": "without",
        "shift": "shifts",
        "n": "n",
        "n_without": "n_without",
        "tau": "tau",
    }
    measures = {measure: {key: run[name][measure] for key, name in names.items()} for measure in run["figures"]}
    return {"pairs": run["pairs"], "relevant": run["relevant"], "measures": measures}


def check_of_changed_texts():
    _built()
    texts = ({"_id": f"d{n:03}", "text": f"passage {n}{'!' if n % 50 == 0 else ''}"} for n in range(500))
    found = worlds.told("golden", "check", "faq", "--corpus", worlds.jsonl("now.jsonl", texts), code=1)
    relabel = {
        f"relabel/{place}": f"{each['query_id']} {each['passage_id']}" for place, each in enumerate(found["relabel"])
    }
    return {f"finding/{each['code']}": each["count"] for each in found["findings"]} | relabel


def diff():
    _built()
    found = worlds.told("golden", "diff", "faq/v1", "faq/v2")
    grades = {f"{each['query']}/{each['passage']}": [each["old"], each["new"]] for each in found["grades"]}
    kinds = {"added": "added", "removed": "removed", "reworded": "reworded", "other_columns": "with_other_columns"}
    queries = {key: found[f"queries_{kind}"] for key, kind in kinds.items()} | {"weights": found["weights"]}
    labels = {"added": found["labels_added"], "removed": found["labels_removed"]}
    found |= {"queries": queries, "passages": {"reworded": found["passages_reworded"]}, "labels": labels}
    return grades | keys.plain(found, "diff", "queries", "passages", "labels", "corpus_changed", "is_empty")


def export_to_beir_and_trec():
    _built()
    found = {}
    for form in ("beir", "trec"):
        corpus = ["--corpus", "corpus.jsonl"] if form == "beir" else []
        worlds.done("golden", "export", "faq/v1", form, "--form", form, *corpus)
        path = form if form == "beir" else f"{form}/qrels.trec"
        found |= keys.labels(rs.read_qrels(path), form)
    return found


def queries_from_traffic():
    """Questions that users asked, grouped and drawn with weights."""
    asked = [f"question {n % 9} of {n % 3} things" for n in range(60)] + [
        "Question 1 of 1 things",
        "QUESTION 4 of 1 things",
    ]
    path = worlds.jsonl("asked.jsonl", ({"text": text} for text in asked))
    worlds.done("golden", "build", "golden.jsonl", "--queries", path, "--size", 6, "--by", "frequency")
    lines = [json.loads(line) for line in Path("golden.jsonl").read_text(encoding="utf-8").splitlines()]
    return {row["text"]: [row["weight"], row["frequency"], str(row["stratum"])] for row in lines}
