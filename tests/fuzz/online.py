"""The kinds of input of online evaluation: logs, joined records, tables of arms and experiments, and Python values."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from rag_selectivity import online
from rag_selectivity.cli.online_compare import online_compare
from rag_selectivity.cli.online_foretold import online_foretold
from rag_selectivity.cli.online_interleave import online_interleave
from rag_selectivity.cli.online_join import online_join
from rag_selectivity.cli.online_positions import online_positions
from rag_selectivity.cli.online_preference import online_preference
from tests.fuzz.changes import ATOMS, JSON_ATOMS, changed_text, changed_value
from tests.fuzz.kind import Kind, changed_one, quietly, written
from tests.fuzz.seeds import RUN, arm_rows, drafts, past_experiments, seeds

# -- files ---------------------------------------------------------------------------------------------------


def log(random: Random, folder: Path) -> None:
    """A changed log of drafts and credits: joined, or a draft of it decided."""
    path = written(random, folder, "drafts.jsonl")
    out = folder / "out.jsonl"
    quietly(
        online_join, [path], max_faults=random.choice((0.01, 1.0)), remember=random.choice((200_000, 2)), output=out
    )
    quietly(online_preference, out, max_faults=1.0, output=folder / "out.json")


def joined(random: Random, folder: Path) -> None:
    """Changed records, decided in one of the ways, perhaps weighted by the positions of other changed ones."""
    path = written(random, folder, "joined.jsonl")
    options: dict[str, Any] = {"max_faults": random.choice((0.01, 1.0)), "output": folder / "out.json"}
    if random.random() < 0.3:
        quietly(online_positions, path, **options)
        return
    if random.random() < 0.4:
        options["weigh_positions"] = written(random, folder, "shuffled.jsonl")
    if random.random() < 0.5:
        options |= {"detect": 0.6, "margin": 0.1}
    unit = random.choice(("auto", "user", "session", "impression"))
    quietly(online_preference, path, unit=unit, any_time=random.random() < 0.5, **options)


def shuffled(random: Random, folder: Path) -> None:
    """Changed records of shuffled orders: the rate of each position."""
    path = written(random, folder, "shuffled.jsonl")
    quietly(online_positions, path, max_faults=random.choice((0.01, 1.0)), output=folder / "out.json")


def arms_table(random: Random, folder: Path) -> None:
    """A changed table of arms, or a changed trace, decided with guardrails, units or a covariate."""
    name = random.choice(("arms.csv", "arms.jsonl", "arms.jsonl", "arms-trace.jsonl"))
    path = written(random, folder, name)
    if name == "arms-trace.jsonl":
        of_trace = {"metric": ["outcome"], "guardrail": ["seconds=.1"], "mean": ["seconds=0:10"], "lower": ["seconds"]}
        quietly(online_compare, path, **of_trace, output=folder / "out.json")
        return
    options: dict[str, Any] = {"guardrail": ["harm=.05"], "lower": ["harm"], "mean": ["harm=0:1"]}
    once = random.random() < 0.5
    if once and random.random() < 0.5:
        options["unit"] = "user"
    if random.random() < 0.5:
        options["covariate"] = ["harm=before:0:1"]
    if random.random() < 0.3:
        options["detect"] = ["cited=.1"]
    planned = random.choice(("1,1", "none", "90,10"))
    quietly(online_compare, path, ["cited"], **options, once=once, planned=planned, output=folder / "out.json")


def experiments(random: Random, folder: Path) -> None:
    """A changed table of past experiments."""
    quietly(online_foretold, written(random, folder, "experiments.csv"), output=folder / "out.json")


def interleaved_runs(random: Random, folder: Path) -> None:
    """Two runs, one of which is changed, drafted by the command."""
    paths = [written(random, folder, "run.trec"), folder / "other.csv"]
    paths[1].write_text("query_id,doc_id,score\nq1,d1,2\nq1,d2,1\nq2,d3,1\n")
    method = random.choice(("team-draft", "balanced", "probabilistic"))
    out = folder / random.choice(("out.jsonl", "drafted.csv"))
    quietly(online_interleave, [str(path) for path in paths], k=3, method=method, output=out)


# -- texts and Python values ---------------------------------------------------------------------------------

#: The options of `online compare`, one of which is changed.
COMPARE = {
    "metric": ["cited"],
    "guardrail": ["harm=.05"],
    "mean": ["harm=0:1"],
    "lower": ["harm"],
    "covariate": ["harm=before:0:1"],
    "margin": ["cited=.1"],
    "detect": ["cited=.1"],
    "arms": "a,b",
    "planned": "1,1",
}


def compare_options(random: Random, folder: Path) -> None:
    """`online compare` with one changed option."""
    path = folder / "arms.csv"
    path.write_bytes(seeds()["arms.csv"])
    options: dict[str, Any] = dict(COMPARE)
    name = random.choice(list(options))
    value = options[name]
    text = changed_text(random, value if isinstance(value, str) else value[0], ":=,.")
    options[name] = text if isinstance(value, str) else [text]
    quietly(online_compare, path, **options, once=random.random() < 0.5, output=folder / "out.json")


INTERLEAVE = {
    "lists": {"a": RUN["q1"], "b": RUN["q2"]},
    "k": 2,
    "seed": "impression-1",
    "method": "team-draft",
}


def draft(random: Random, folder: Path) -> object:
    """A draft, an order, credit and citations of changed values; and what an application logs of them."""
    match random.randrange(4):
        case 0:
            given = changed_one(
                random, {**INTERLEAVE, "method": random.choice(("team-draft", "balanced", "probabilistic"))}
            )
            return online.interleave(**given).record("q")
        case 1:
            return online.shuffle(**changed_one(random, {"passages": RUN["q1"], "seed": "i"})).record("q")
        case 2:
            passages = changed_value(random, ["d1", "d2"])
            cited = online.citations(changed_text(random, "as [d1, d2] says, and [1][Source 2]", " [],"), ["d1", "d2"])
            return cited, online.credit(**changed_one(random, {"cited": passages, "thumb": -1, "marks": {"d1": 0.5}}))
        case _:
            return logged(random, folder)


def logged(random: Random, folder: Path) -> object:
    """An application's own log, with changed queries, lists, answers and credit, joined afterwards."""
    record = online.RecordLog(folder / "log.jsonl")
    interleaver = online.Interleaver(record, k=2)
    given = changed_one(random, {"query": "who?", "lists": INTERLEAVE["lists"], "answer": "so [d1]", "thumb": 1.0})
    credit = changed_one(random, {"impression": "i1", "credit": {"d1": 1.0}})
    who = changed_one(random, {"id": "i1", "session": "s", "user": "u", "arm": "a"})
    try:
        with online.impression(**who) as current:
            interleaver.draft(given["query"], given["lists"])
            interleaver.credit_answer(given["answer"], thumb=given["thumb"])
            record.credit(**credit)
            assert online.current_impression() is current
    finally:
        record.close()
    return list(online.join_records(folder / "log.jsonl", max_faults=1.0))


def records(random: Random, folder: Path) -> object:
    """Changed rows and options of `preference`, `citation_rates` and `join_records`."""
    rows = changed_value(random, drafts())
    if random.random() < 0.3:
        rows = drafts()
    match random.randrange(3):
        case 0:
            options = {"baseline": "a", "unit": "auto", "level": 0.9, "margin": 0.1, "detect": 0.6, "power": 0.8}
            given = changed_one(random, {**options, "clip": 5.0, "max_faults": 0.5, "sequential": False})
            return online.preference(rows, **given).to_text()
        case 1:
            return online.citation_rates(rows, **changed_one(random, {"level": 0.9, "max_faults": 0.5})).to_text()
        case _:
            return list(online.join_records(rows, **changed_one(random, {"remember": 3, "max_faults": 1.0})))


ARMS: dict[str, Any] = {
    "a": [0, 1, 0, 1, 1, 0],
    "b": [1, 1, 0, 1, 1, 1],
    "kind": "rate",
    "level": 0.9,
    "margin": 0.1,
    "higher_is_better": True,
    "bounds": (0.0, 1.0),
    "clip": True,
    "covariate": ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.3, 0.2, 0.1, 0.4, 0.5, 0.6]),
    "covariate_bounds": (0.0, 1.0),
    "planned": (1, 1),
    "detect": 0.2,
    "power": 0.8,
}
METRIC: dict[str, Any] = {"name": "harm", "kind": "mean", "bounds": (0.0, 1.0), "clip": True, "margin": 0.1}
EXPERIMENT: dict[str, Any] = {
    "arms": ("a", "b"),
    "planned": (1, 1),
    "covariate": {"harm": ("before", (0.0, 1.0))},
    "unit": None,
}


def arms(random: Random, folder: Path) -> object:
    """`compare_arms` with a changed argument, always valid or for one look."""
    given = {**ARMS, "kind": random.choice(("rate", "mean"))}
    if random.random() < 0.6:
        del given["covariate"]
    return online.compare_arms(**changed_one(random, given), sequential=random.random() < 0.5).to_text()


def experiment(random: Random, folder: Path) -> object:
    """An `Experiment` with a changed metric, option or row; and `foretold` of what it found and of changed rows."""
    rows = arm_rows()[:12]
    metric, options = dict(METRIC), dict(EXPERIMENT)
    decide: dict[str, Any] = {"level": 0.9, "detect": {"cited": 0.1}, "power": 0.8}
    sequential = random.random() < 0.5
    match random.randrange(5):
        case 0:
            metric = changed_one(random, metric)
        case 1:
            options = changed_one(random, options)
        case 2:
            decide = changed_one(random, decide)
        case 3:
            rows = changed_value(random, rows)
        case _:
            past = changed_value(random, past_experiments(), JSON_ATOMS if random.random() < 0.5 else ATOMS)
            return online.foretold(past, **changed_one(random, {"level": 0.9})).to_text()
    test = online.Experiment([online.Metric("cited"), online.Metric(**metric)], sequential=sequential, **options)
    for row in rows if isinstance(rows, list) else ():
        test.add(row)
    decided = test.decide(**decide)
    decided.to_text(), decided.to_dict()
    return online.foretold([{"online": each, "offline": {"RA-nWG@10": 0.1}} for each in decided.metrics])


KINDS: tuple[Kind, ...] = (
    Kind("online log", log),
    Kind("online records", joined),
    Kind("shuffled orders", shuffled),
    Kind("arms", arms_table),
    Kind("past experiments", experiments),
    Kind("interleaved runs", interleaved_runs),
    Kind("online compare", compare_options),
    Kind("drafts", draft),
    Kind("online rows", records),
    Kind("two arms", arms),
    Kind("experiment", experiment),
)
