"""The pages of the caveats."""

from __future__ import annotations

from rag_selectivity.explain.code import Code

#: A world of labels by a judge, for several examples.
_GRADED = """
    import rag_selectivity as rs

    queries, texts = {"q1": "How long is the warranty?"}, {"a": "Two years.", "b": "We sell lamps."}
    run = {"q1": ["a", "b"]}

    async def judge(messages, schema):
        return {"reason": "by a rule", "grade": 5 if "Two years" in messages[1]["content"] else 1}

    rs.grade(queries, texts, [run], store="graded.db", judge=judge)
"""

CAVEAT_PAGES = (
    Code(
        "closed-labels",
        "The labels were made from what was retrieved, so the figure compares the lists with themselves.",
        "Recall, best sets and random baselines count only the relevant passages that somebody labelled. If only "
        "retrieved passages were labelled, whatever the retriever missed counts nowhere: RA-nWG, PROC, N-Recall, R, F, "
        "Rprec, AP, nDCG, BoR, EF and RandomSuccess look better than they are. Precision, Harm and T are not affected, "
        "since they look at the list alone.",
        "Strong: at most 5% of the labels are outside the run's own top K. Soft: at most 5% are outside all evaluated "
        "lists and pools, or a label store says that all labels come from pools. It appears only if some labels have "
        "the lowest grade of the scale, or at least 90% of the top K is judged, and if for at least 10% of the queries "
        "less than 90% of the corpus is judged. So labels that are all relevant, and few, do not get it, even if they "
        "were taken from the lists. Labels of controls and of a tail do not count as outside. The labels of a perfect "
        "run look closed too, and the caveat says so.",
        "Have the same judge grade random passages (`grade --controls 3`), which BoR and EF need, and some of the "
        "ranks below the lists (`grade --tail 200:10`), which RA-nWG, R, AP and nDCG need. Or "
        "read Precision, Harm and T.",
        """
        import rag_selectivity as rs

        labels = {f"q{i}": {"a": 1, "b": 0} for i in range(4)}
        run = {query: ["a", "b"] for query in labels}
        report = rs.evaluate(labels, {"mine": run}, corpus_size=1000, measures=["BoR"], depths=[2], bootstrap=None)
        assert "closed-labels" in [caveat.code for caveat in report["BoR@2"].caveats]
        """,
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "equals-placebo",
        "It is not shown that the figure differs from its placebo, the figure of the same grades shuffled.",
        "The same labels, with their grades shuffled, give a figure that the data cannot tell from this one. The "
        "figure then shows nothing about the retriever: either the labels say nothing, or there are too few queries.",
        "The paired interval of figure − placebo contains 0. RA-nWG, PROC, N-Recall, R, nDCG, AP, RR, BoR and EF have "
        "a placebo. If labels are closed, a perfect run equals its placebo too, and the caveat says so.",
        "Label passages outside the lists (a tail, random controls), or more queries.",
        """
        import random

        import rag_selectivity as rs

        rng = random.Random(7)
        run = {f"q{i}": [f"d{i}-{rank}" for rank in range(3)] for i in range(20)}
        dice = {query: {passage: rng.randint(1, 5) for passage in passages} for query, passages in run.items()}
        report = rs.evaluate(dice, {"mine": run}, scale="utility", measures=["RA-nWG"], depths=[3])
        assert "equals-placebo" in [caveat.code for caveat in report["RA-nWG@3"].caveats]
        """,
        how_to="how-many-queries",
    ),
    Code(
        "by-construction",
        "Success counts only the queries for which something relevant was found, so it is too high.",
        "Queries without a relevant label are left out of Success. If nearly all labels are of the top K, the queries "
        "that remain are those in which the top K holds a relevant passage, and Success is nearly 1 by construction "
        "(strong). If they are of what several runs retrieved, the queries for which no run found anything are missing "
        "(soft). The caveat gives the share of all queries that succeed.",
        "Success@K where the labels are closed (see `closed-labels`), with or without a tail, and some queries have no "
        "relevant label.",
        "Read the share of all queries in the caveat, or label passages outside the lists.",
        """
        import rag_selectivity as rs

        labels = {f"q{i}": {"a": i % 2, "b": 0} for i in range(4)}
        run = {query: ["a", "b"] for query in labels}
        report = rs.evaluate(labels, {"mine": run}, measures=["Success"], depths=[2], bootstrap=None)
        (caveat,) = [each for each in report["Success@2"].caveats if each.code == "by-construction"]
        assert (report["Success@2"].value, caveat.figures["of_all_queries"]) == (1.0, 0.5)
        """,
    ),
    Code(
        "down-to-rank",
        "The figure is about the candidates down to a rank, from which passages were drawn and graded.",
        "Below the pool only a random part of the passages was graded, down to some rank. Relevant passages that no "
        "list holds down to that rank are missing from the figure.",
        "Labels of a store that were drawn from a tail (`grade --tail`), for measures that compare a list with all "
        "labels. Soft where the passages that were not drawn count as not relevant: out of core, and in `Tally`. A "
        "note where they are completed by the graded ones.",
        "Say “down to rank t” where you report the figure.",
        """
        import rag_selectivity as rs

        queries, texts = {"q1": "How long is the warranty?"}, {f"d{i}": f"passage {i}" for i in range(8)}
        run = {"q1": list(texts)}

        async def judge(messages, schema):
            return {"reason": "by a rule", "grade": 5 if "passage 1" in messages[1]["content"] else 1}

        rs.grade(queries, texts, [run], store="graded.db", judge=judge, pool_depth=2, tail="6:2")
        report = rs.evaluate("graded.db", {"mine": run}, scale="utility", measures=["RA-nWG"], depths=[2])
        assert "down-to-rank" in [caveat.code for caveat in report["RA-nWG@2"].caveats]
        """,
    ),
    Code(
        "partly-judged",
        "Some passages of the top K are unjudged, and the figure counts them as not relevant or as harmless.",
        "Precision, Precision4+ and T count an unjudged passage as not relevant: with it judged they can only rise. "
        "Harm counts it as harmless, and its possible range says what it would be if all of them were junk.",
        "Judged@K is below 1, for P, Precision4+, T and Harm. Not with `unjudged='worst'`, which says that judgments "
        "are exhaustive.",
        "Label the unjudged passages of the lists (`grade --pool RUN` grades what is missing), or read the possible "
        "range. If every unjudged passage is junk, give `unjudged='worst'` (`--unjudged worst`).",
        """
        import rag_selectivity as rs

        report = rs.evaluate({"q1": {"a": 1}}, {"mine": {"q1": ["a", "b"]}}, measures=["P"], depths=[2], bootstrap=None)
        assert [caveat.code for caveat in report["P@2"].caveats] == ["partly-judged"]
        """,
    ),
    Code(
        "concentrated-chance",
        "The random baseline depends mostly on few queries, so that the interval is probably too narrow.",
        "BoR and EF divide by the mean of RandomSuccess. If a few queries have far more relevant passages than the "
        "others, they carry that mean, and resampled queries vary more than the interval shows.",
        "The effective number of queries of the baseline, (Σp)²/Σp², is below 100 and below two thirds of the queries; "
        "with fewer than 30 queries, wherever the chances of the queries differ.",
        "Evaluate more queries, or name the effective number beside the figure.",
        """
        import rag_selectivity as rs

        labels = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"a": 1}, "q3": {"b": 1}}
        run = {query: ["a", "b"] for query in labels}
        report = rs.evaluate(labels, {"mine": run}, corpus_size=1000, measures=["BoR"], depths=[2])
        assert "concentrated-chance" in [caveat.code for caveat in report["BoR@2"].caveats]
        """,
        how_to="how-many-queries",
    ),
    Code(
        "concentrated-controls",
        "The relevant controls are in few queries, so that the interval is probably too narrow.",
        "How often the judge calls a random passage relevant is known from few queries only, and other queries may "
        "differ.",
        "Figures with several relevant controls, spread over effectively fewer than three queries.",
        "Grade controls for more queries, or more of them (`grade --controls 10`).",
        """
        import rag_selectivity as rs

        run = {f"q{i}": [f"a{i}", f"b{i}"] for i in range(40)}
        labels = {query: {a: 1, b: 0} for query, (a, b) in run.items()}
        controls = {query: {f"{query}-c{j}": int(query == "q7") for j in range(4)} for query in run}
        report = rs.evaluate(
            labels, {"mine": run}, corpus_size=1000, controls=controls, measures=["BoR"], depths=[2]
        )
        assert "concentrated-controls" in [caveat.code for caveat in report["BoR@2"].caveats]
        """,
        how_to="cost-of-labels",
    ),
    Code(
        "as-judged-baseline",
        "There are random controls, but this row of a comparison has the random baseline as judged.",
        "Both figures rest on labels that may be closed, and so does a difference in EF. A difference in bits does not "
        "depend on the baseline if both runs have the same.",
        "A row of `compare` with controls that cannot use them: no control is relevant, the measure is EF, or the "
        "comparison is unpaired.",
        "Read the levels in `evaluate`, which uses the controls.",
        """
        import rag_selectivity as rs

        run = {f"q{i}": [f"a{i}", f"b{i}"] for i in range(12)}
        other = {query: [b, f"z{query}"] for query, (a, b) in run.items()}
        labels = {query: {a: 1, b: i % 2} for i, (query, (a, b)) in enumerate(run.items())}
        controls = {query: {f"{query}-c{j}": 0 for j in range(3)} for query in run}
        compared = rs.compare(
            labels, {"old": run, "new": other}, corpus_size=1000, controls=controls, measures=["EF"], depths=[2]
        )
        assert "as-judged-baseline" in [caveat.code for caveat in compared["new", "EF@2"].caveats]
        """,
    ),
    Code(
        "one-judge",
        "All labels come from one judge: an error that it repeats is in every figure.",
        "Nothing in the labels shows the judge's errors. It concerns every figure of the report.",
        "A label store, or labels that know their judge, with one judge and no label by a person. Figures that are "
        "calibrated by people's labels do not have it.",
        "Have people label some pairs (`annotate --draw calibrate:200`), or add a second judge.",
        _GRADED
        + """
    report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
    assert "one-judge" in [caveat.code for caveat in report.runs["mine"].caveats]
""",
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "agreement-unknown",
        "No person has checked the judge.",
        "The figures are what this judge calls relevant, and nobody has compared it with people. It concerns every "
        "figure of the report. Figures of the lists alone, such as Harm, Precision4+, T and P, have its mark, "
        "since they have no caveat about labels that are missing.",
        "A judge gave labels, and fewer than 30 pairs of 10 queries have a person's label too. Figures that are "
        "calibrated by people's labels do not have it.",
        "Have people label some pairs that the judge graded: `annotate --draw agree:100` says how far they agree, and "
        "`annotate --draw calibrate:200` with `evaluate --human` allows for the judge's errors. `agree --run a=… --run "
        "b=…` says whether the judge ranks runs as people do.",
        _GRADED
        + """
    report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
    assert "agreement-unknown" in [caveat.code for caveat in report.runs["mine"].caveats]
""",
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "agreement-too-low",
        "The judge agrees too little with people.",
        "The judge's grades and those of people differ so much that the figures do not say what people would say. It "
        "concerns every figure of the report.",
        "The interval of the quadratic kappa of judge and people, over the pairs that both graded, is below .4. "
        "Figures that are calibrated by people's labels do not have it.",
        "Change the rubric or the judge, and compare again with `agree`; or calibrate the figures by people's labels "
        "(`evaluate --human`).",
        """
        import rag_selectivity as rs
        from rag_selectivity.grading.store import Store

        queries, texts = {f"q{i}": f"question {i}" for i in range(21)}, {"a": "one", "b": "two"}
        run = {query: ["a", "b"] for query in queries}

        async def judge(messages, schema):
            return {"reason": "by a rule", "grade": 5 if "one" in messages[1]["content"] else 1}

        rs.grade(queries, texts, [run], store="graded.db", judge=judge)
        opposite = [(query, *pair, None) for query in list(run)[:20] for pair in (("a", 1), ("b", 5))]
        with Store("graded.db") as store:
            store.put_human(opposite, "anna")
        report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
        assert "agreement-too-low" in [caveat.code for caveat in report.runs["mine"].caveats]
        """,
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "outdated-labels",
        "Some labels of people are of an older text of their query or passage.",
        "A person read a text that has changed since. The label counts, and may be wrong for the present text.",
        "A label store that knows which text a person read, as it does of answers to `annotate` and `golden draw`, and "
        "another text of the same id since. Qrels do not say which text was read.",
        "Have people label these pairs again.",
        _GRADED
        + """
    from rag_selectivity.grading.store import HumanLabel, Store, digest

    read = digest(queries["q1"]), digest(texts["a"])
    with Store("graded.db") as store:
        store.put_human_labels([HumanLabel("q1", "a", "anna", 4, None, *read)])
    texts["a"] = "Two years, for lamps three."
    rs.grade(queries, texts, [run], store="graded.db", judge=judge)
    report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
    assert "outdated-labels" in [caveat.code for caveat in report.runs["mine"].caveats]
""",
    ),
    Code(
        "unknown-origin",
        "How a part of the labels was chosen is not known.",
        "Closed labels are found by where labels come from, if that is known. A part of these labels does not say.",
        "A label store that knows the origin of some of its labels, and not of the others. Labels of which nothing is "
        "known have no such caveat: their own shares decide.",
        "Grade with `grade`, which writes down how each pair was chosen.",
        _GRADED
        + """
    from rag_selectivity.grading.store import Store

    with Store("graded.db") as store:
        store.put_human([("q1", "c", 4, None)], "anna")
    report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
    assert "unknown-origin" in [caveat.code for caveat in report.runs["mine"].caveats]
""",
    ),
    Code(
        "people-not-drawn",
        "People labelled pairs that this tool did not draw.",
        "Pairs that somebody picked, such as interesting ones, can make the judge look better or worse than it is.",
        "A label store with labels of people whose pairs no draw of `annotate` holds, beside a judge's labels.",
        "Have people label pairs that `annotate --draw` draws.",
        _GRADED
        + """
    from rag_selectivity.grading.store import Store

    with Store("graded.db") as store:
        store.put_human([("q1", "a", 4, None)], "anna")
    report = rs.evaluate("graded.db", {"mine": run}, depths=[2], bootstrap=None)
    assert "people-not-drawn" in [caveat.code for caveat in report.runs["mine"].caveats]
""",
        how_to="a-judge-that-nobody-checked",
    ),
    Code(
        "strata-without-labels",
        "People labelled no pair of some strata, and few pairs are in them.",
        "Calibrated figures learn from people's labels how the judge errs in each stratum: a grade of the judge in a "
        "part of the lists. A stratum without a label is completed by the labels of another one, or by any grade.",
        "Note: the pairs count as those of the nearest grade with labels in the same place. Soft: a place has no label "
        "at all, so its pairs are completed with anything from the worst to the best grade, and the interval covers "
        "both. Where more than a tenth of the pairs are in such strata, the figure is undefined.",
        "Draw the pairs with `annotate --draw calibrate:N`, with all runs that are measured.",
        """
        import rag_selectivity as rs

        judge = {f"q{i}": {"a": 4, "b": 1 + (i == 0)} for i in range(20)}
        people = {query: row for query, row in judge.items() if query != "q0"}
        run = {query: ["a", "b"] for query in judge}
        report = rs.evaluate(judge, {"mine": run}, human=people, scale="utility", measures=["Harm"], depths=[2])
        assert "strata-without-labels" in [caveat.code for caveat in report["Harm@2"].caveats]
        """,
        how_to="a-judge-that-nobody-checked",
    ),
)
