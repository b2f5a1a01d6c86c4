"""The pages of warnings about labels, runs and label stores."""

from __future__ import annotations

from rag_selectivity.explain.code import Code
from rag_selectivity.explain.examples import GRADED, TASK, evaluated, heard

_IDS = "ids-do-not-match"
_CHOSEN = """
import rag_selectivity as rs
from rag_selectivity.grading.store import Draw, HumanLabel, Store

drawn = [Draw("person", "anna", how={"design": design}) for design in ("agree:1", "disagree:1")]
with Store("people.db") as store:
    store.put_human_labels(
        HumanLabel("q1", passage, "anna", 4, draw=draw) for passage, draw in zip("ab", drawn, strict=True)
    )
"""
_OUTSIDE = """
from rag_selectivity.grading.store import Draw, Origin, Store

with Store("graded.db") as store:
    store.put_origins([("q1", "z", Origin(Draw("control", how={"drawn": 1})))])
    store.put_human([("q1", "z", 1, None)], "anna")
"""

WARNING_PAGES = (
    Code(
        "ids-do-not-match",
        "No retrieved passage, or no query, has a label under its id.",
        "Labels and lists name different things, or name them differently. A figure would be 0 or NaN whatever the "
        "retriever does. Where it is certain, it is an error; this warning stands where an empty result is possible.",
        "No retrieved passage is judged and `ids='exact'` accepts that; the labels of a monitor are found for no "
        "passage or no query so far, or by different ids equally well; no row of a framework retrieved a judged "
        "passage; no labelled passage is in the index; no passage of the groups (`groups`) is retrieved or labelled.",
        "Look at the examples of both sides in the message. Give the form or the identity under which they match "
        "(`ids=`, `identity=`), or labels by the ids that the index keeps.",
        evaluated('{"q1": {"a": 1}}', '{"q1": ["doc-a"]}', "ids-do-not-match", ', ids="exact"'),
        how_to=_IDS,
    ),
    Code(
        "ids-partly-match",
        "Ids of labels and of lists match in part only, so that figures are probably too low.",
        "What does not match counts as unjudged or as a missing query.",
        "In another form (case, blanks, leading zeros …) clearly more ids match; fewer than a tenth of the queries of "
        "the smaller side are in both; or the lists hold far fewer judged passages than they could.",
        "Give the form that the message names (`ids='casefold'`). If the ids are right as they are, `ids='exact'` says "
        "so.",
        evaluated(
            '{f"q{i}": {f"d{i}": 1} for i in range(10)}',
            '{f"q{i}": [f"d{i}" if i < 2 else f"D{i}"] for i in range(10)}',
            "ids-partly-match",
        ),
        how_to=_IDS,
    ),
    Code(
        "rank-against-score",
        "Rank and score of a run contradict each other; its lists are ordered by score.",
        "If a smaller score is better, the lists are upside down.",
        "A file or table of a run has both, and neighbouring rows are in another order by the one than by the other.",
        "Negate the scores if smaller is better, or give `order='rank'` (`--order rank`) if the ranks are right.",
        evaluated('{"q1": {"a": 1}}', '"run.trec"', "rank-against-score").replace(
            "labels = ",
            'with open("run.trec", "w") as file:\n'
            '    file.write("q1 Q0 a 1 0.2 mine\\nq1 Q0 b 2 0.9 mine\\n")\nlabels = ',
        ),
    ),
    Code(
        "ranking-columns-in-labels",
        "The labels have a column for a score or a rank too: they may be a run.",
        "A run that is read as labels gives grades that nobody gave.",
        "A table of labels with a column that a run would have.",
        "Give the labels first and the runs after them, or leave the column out of the labels.",
        evaluated('"labels.csv"', '{"q1": ["a"]}', "ranking-columns-in-labels").replace(
            "labels = ",
            'with open("labels.csv", "w") as file:\n'
            '    file.write("query_id,passage_id,grade,score\\nq1,a,1,0.7\\n")\nlabels = ',
        ),
    ),
    Code(
        "labels-and-run-swapped",
        "The labels are lists, and the scores of the run are few whole numbers, as grades are.",
        "Labels and run are probably swapped, and the figures then mean nothing.",
        "Labels given as lists of expected ids, and a run whose scores are whole numbers from 0 to 5 with many ties.",
        "Give the labels first and the runs after them.",
        evaluated('{"q1": ["a"]}', '{"q1": {"a": 1, "b": 0, "c": 0}}', "labels-and-run-swapped"),
    ),
    Code(
        "all-scores-tied",
        "The scores within each list are all equal, so that the order follows from the ids alone.",
        "Ties are broken by descending passage id, as trec_eval does. The order says nothing about the retriever.",
        "Every list of a run with scores has one score only.",
        "Give scores that differ, or lists in rank order instead of {id: score}.",
        evaluated('{"q1": {"a": 1}}', '{"q1": {"a": 1.0, "b": 1.0}}', "all-scores-tied"),
    ),
    Code(
        "scores-for-grades",
        "The grades are so high that they are probably the scores of a run.",
        "Every positive number counts as a grade on the `trec` scale, so every passage would be relevant.",
        "The highest grade is higher than grades usually are.",
        "Give the labels first and the runs after them. If these are grades, map them to a scale with a grade map.",
        evaluated('{"q1": {"a": 90, "b": 70}}', '{"q1": ["a"]}', "scores-for-grades", ', scale="trec"'),
        how_to="labels-on-the-wrong-scale",
    ),
    Code(
        "list-longer-than-corpus",
        "A list has more passages than its corpus.",
        "N is too small, so a random draw looks better than it is, and BoR is too low.",
        "The distinct passages of a list are more than the N of its query.",
        "Give the number of passages that can be retrieved, not that of documents.",
        evaluated('{"q1": {"a": 1}}', '{"q1": ["a", "b", "c"]}', "list-longer-than-corpus", ", corpus_size=2"),
        how_to="corpus-size",
    ),
    Code(
        "passages-of-another-index",
        "`passages_of` does not fit the lists: it is probably of another index.",
        "The random baseline counts chunks by `passages_of`; with other numbers it is another baseline.",
        "A list names a document more often than it has passages there, or names one that is not in it where N is the "
        "sum of all its passages.",
        "Count the passages of each document in the index that was searched.",
        evaluated(
            '{"q1": {"D": 1}}', '{"q1": ["D", "D", "D"]}', "passages-of-another-index", ', passages_of={"D": 2, "E": 5}'
        ),
        how_to="chunks-and-documents",
    ),
    Code(
        "outside-corpus",
        "Some labelled or retrieved passages are not in the corpus that was given.",
        "No retriever and no random draw can find a passage that the corpus lacks, so its label is left out; controls "
        "from a corpus that lacks retrieved passages are not from what was searched.",
        "`corpus=` lacks some of the labelled passages, or, when controls are drawn, some of the retrieved ones.",
        "Give the corpus that was indexed, and labels of that version.",
        evaluated('{"q1": {"a": 1, "gone": 1}}', '{"q1": ["a"]}', "outside-corpus", ', corpus=["a", "b", "c"]'),
        how_to=_IDS,
    ),
    Code(
        "controls-left-out",
        "The labels hold random controls, which are left out here: figures against a random draw are as judged.",
        "Figures of single queries cannot use controls, since the judge's rate is estimated over all queries.",
        "Labels with controls are given to a `Monitor` or to metrics of single queries.",
        "Read BoR from `evaluate`, which estimates it with the controls.",
        heard(
            GRADED.replace('"a": "Two years."}', '"a": "Two years.", "b": "No.", "c": "Yes."}').replace(
                "judge=judge)", "judge=judge, controls=1)"
            ),
            'rs.Monitor("graded.db", corpus_size=3)',
            "controls-left-out",
        ),
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "expected-ids-without-grade",
        "Some labels are expected ids without a grade: they count as relevant.",
        "For their queries everything else is unjudged, so Harm and Precision say less than for queries with grades.",
        "Labels of which some are {passage: grade} and others lists of ids.",
        "Give grades for all queries, or lists for all.",
        heard(
            "import rag_selectivity as rs",
            'rs.Monitor({"q1": {"a": 5, "b": 1}, "q2": ["c"]}, scale="utility")',
            "expected-ids-without-grade",
        ),
    ),
    Code(
        "plugin-unusable",
        "A measure, reader or judge of another installed package cannot be used.",
        "Everything else works; the name that the package would add is missing.",
        "An entry point of a `rag_selectivity.…` group that cannot be imported or is of another kind.",
        "Mend or remove the package that the message names.",
        heard(
            """
import sys
from pathlib import Path

from rag_selectivity.data.registry import Registry

folder = Path("broken-1.0.dist-info")
folder.mkdir()
(folder / "METADATA").write_text("Name: broken\\nVersion: 1.0\\n")
(folder / "entry_points.txt").write_text("[example.measures]\\nMine = nowhere:Mine\\n")
sys.path.insert(0, str(Path.cwd()))
""",
            'list(Registry("measure", "example.measures", object))',
            "plugin-unusable",
        ),
    ),
    Code(
        "other-rubric",
        "People read another rubric than the judge graded by.",
        "Their grades mean different things unless the wordings agree, so agreement and calibration may mislead.",
        "`annotate` draws pairs of a store whose judge graded by another rubric than the page will show.",
        "Give the judge's rubric with `--rubric FILE`.",
        heard(
            GRADED
            + """
from dataclasses import replace

from rag_selectivity.grading.annotation.making import make_tasks
from rag_selectivity.grading.rubric import DEFAULT_RUBRIC
from rag_selectivity.grading.store import Store

ours = replace(DEFAULT_RUBRIC, name="ours", instructions="Grade as you like.")
""",
            """
with Store("graded.db") as store:
    make_tasks(store, "agree:1", queries=queries, corpus=texts, annotators=["anna"], rubric=ours)
""",
            "other-rubric",
        ),
    ),
    Code(
        "answers-of-older-texts",
        "Some answers of an annotator are left out, since their texts have changed since.",
        "The grades are of texts that nobody retrieves any more.",
        "`store import` of answers to a task whose pairs have other texts in the store now.",
        "Have people grade the new texts: draw again with `annotate`.",
        heard(
            GRADED + TASK + 'texts["a"] = "Two years, for lamps three."\n'
            'rs.grade(queries, texts, [run], store="graded.db", judge=judge)\n'
            "from pathlib import Path\n",
            """
with Store("graded.db") as store:
    import_answers(store, Path("answers.json"))
""",
            "answers-of-older-texts",
        ),
    ),
    Code(
        "targeted-labels",
        "Labels by people are left out, since their pairs were chosen by what was known of their labels.",
        "Pairs on which judges differ, or that could decide between two runs, are harder than others. An agreement or "
        "a calibrated figure that counted them would be biased.",
        "`agree` with labels of people from `golden draw --draw disagree:N` or `disagree-sampled:N`, or "
        "from an adjudication.",
        "Have people label pairs of `annotate --draw agree:N` or `calibrate:N`. The labels that were left out still "
        "replace the judge's grades in figures that are not calibrated, and are in the task of `golden adjudicate`.",
        heard(
            _CHOSEN,
            'rs.agree("people.db", {"q1": {"a": 4, "b": 5}})',
            "targeted-labels",
        ),
        how_to="what-to-label-next",
    ),
    Code(
        "outside-by-people",
        "Labels that people alone gave to random passages outside the lists are left out.",
        "A random baseline, and an estimate from the tail of a pool, compare passages outside the lists with passages "
        "in them. If a judge graded the ones and people the others, the comparison would mix two notions of relevance.",
        "A label store in which a judge graded the lists, and only people graded passages of `golden draw --draw "
        "random:N` or `tail:LAST:N`.",
        "Have the judge grade random passages (`grade --controls`, `--tail`), or measure with people's labels alone "
        "(`--judge ada`).",
        heard(
            GRADED + _OUTSIDE,
            'rs.read_qrels("graded.db")',
            "outside-by-people",
        ),
        how_to="what-to-label-next",
    ),
    Code(
        "grades-contradict",
        "Some grades contradict what the same annotator said before outside this task; the new ones count.",
        "One of the two was a slip, or the annotator's notion of relevance has changed.",
        "`store import` of answers for pairs that have another grade by the same annotator.",
        "Ask the annotator which grade is meant.",
        heard(
            GRADED + TASK + "from pathlib import Path\n",
            """
with Store("graded.db") as store:
    store.put_human([("q1", "a", 1, None)], "anna")
    import_answers(store, Path("answers.json"))
""",
            "grades-contradict",
        ),
    ),
    Code(
        "pairs-not-graded",
        "The judge did not grade all pairs: some failed, or were left when it stopped.",
        "These pairs are unjudged in the figures, and Judged@K says how many there are.",
        "`grade_retriever` and its kin, after a run with failed or left-over pairs.",
        "Run it again: what is graded already is not asked again. The message names what failed.",
        heard(
            """
import asyncio

from rag_selectivity.grading.single import label_lists

async def judge(messages, schema):
    if "Two years" in messages[1]["content"]:
        return "no grade"
    return {"reason": "by a rule", "grade": 1}

texts = {"a": "Two years.", "b": "No."}
""",
            'asyncio.run(label_lists({"q1": "How long?"}, texts, {"q1": ["a", "b"]}, store="graded.db", judge=judge))',
            "pairs-not-graded",
        ),
        how_to="stopped-grading",
    ),
    Code(
        "usage-ignored",
        "An endpoint says that one request took more tokens, or cost more, than any request can.",
        "Nothing else of its answer is doubted. The tokens are estimated, as for an endpoint that does not count them.",
        "Whenever a judge is asked.",
        "Check what stands between you and the model, such as a proxy that counts. A budget in money then needs prices "
        "(--price-in, --price-out).",
        heard(
            """
import rag_selectivity as rs
from rag_selectivity.grading.judge import Usage

async def judge(messages, schema):
    return {"reason": "by a rule", "grade": 1}, Usage(10**30, 5)
""",
            'rs.grade({"q1": "How long?"}, {"a": "Two years."}, {"q1": ["a"]}, store="graded.db", judge=judge)',
            "usage-ignored",
        ),
    ),
    Code(
        "csv-formulas",
        "A CSV file holds cells that a program for sheets would compute as formulas.",
        "Nothing for the figures. Programs that join files by their ids need the ids as they are, so that these cells "
        "are written unchanged.",
        "A cell begins with `=`, `+`, `@`, a tab or the end of a line, or with `-` and is no number.",
        "Nothing where programs read the file. Add `--csv-safe` (`csv_safe=True`) for a file that people open in a "
        "program for sheets: an apostrophe stands before each such cell then.",
        heard(
            "from rag_selectivity.io.writing import write_rows",
            'write_rows("per_query.csv", [{"query_id": "=1+1", "Success@10": 1.0}])',
            "csv-formulas",
        ),
        how_to="outputs",
    ),
)
