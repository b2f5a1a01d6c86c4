// What to label next: hard negatives and magnets, and the pairs of both as a file for a labelling task.
const cellLength = 110; // characters of a text that a cell of a table has room for

/** The pairs of some passages, in the top K of any run, that have no label. */
function unlabelledPairs(model, passages) {
  const wanted = new Set(passages);
  const pairs = [];
  for (const query of model.all) {
    const found = new Set(model.listed.flatMap((run) => model.list(run, query).slice(0, model.K)));
    for (const passage of found)
      if (wanted.has(passage) && !model.grades(query).has(passage)) pairs.push([query, passage]);
  }
  return pairs;
}

function labellingView(model, { open }) {
  if (!model.lists) {
    at("labelling").replaceChildren(make("p", { class: "x-muted" }, "The page was made without the runs, so it does not know what they retrieved."));
    return;
  }
  hardView(model, open);
  magnetView(model, open, "magnets", model.magnets, model.totals[1],
    `Passages that are labelled as junk (grade ${model.junk} or lower) for at least ${model.magnet_queries} of the queries in whose top ${model.K} ` +
    `a run has them; most such queries first.`);
  magnetView(model, open, "unlabelled", model.unlabelled, model.totals[2],
    `Passages that a run has in the top ${model.K} of at least ${model.unlabelled_queries} queries, and that have a label for none of these; most queries first.`);
}

const only = (shown, total, what) => (shown < total ? ` The first ${shown.toLocaleString("en")} of ${counted(total, what)} are listed.` : "");

function saveButton(model, name, pairs) {
  const place = at("save-" + name);
  place.replaceChildren();
  if (!pairs.length) return;
  const file = { hard: "hard-negatives.csv", magnets: "magnets.csv", unlabelled: "unlabelled-passages.csv" }[name];
  const said = make("span", { role: "status", class: "x-muted" });
  place.append(
    button(`Save ${counted(pairs.length, "pair")} without a label as ${file}`, () => {
      savePairs(model, pairs, file);
      const computed = pairs.flatMap(([query, passage]) => [model.queries[query], model.passages[passage]]).some((id) => /^[=+@\t\r-]/.test(id));
      said.textContent = `${counted(pairs.length, "pair")} saved as ${file}.` +
        (computed ? " A program for sheets would compute ids that begin with =, +, - or @ as formulas." : "");
    }, { class: "x-button" }), " ", said,
    make("p", { class: "x-muted x-command" }, "This command has a judge grade them: ",
      make("code", {}, `rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool ${file} --store graded.db --model NAME`)),
    make("p", { class: "x-muted x-command" }, "This command makes a page on which people label them, where the store holds a judge's grades: ",
      make("code", {}, `rag-selectivity labels draw --queries queries.jsonl --corpus corpus.jsonl --draw file:${file} graded.db --output task.html`)));
}

function hardView(model, open) {
  const several = model.listed.length > 1;
  at("hard-meaning").textContent =
    `Passages without a label ` + (several ? `that at least two runs have in the top ${model.K}` : `in the top ${model.K} of the run`) +
    `, ordered by the mean over ${several ? "all runs" : "the run"} of 1 / rank (0 for a run that does not have it there).` + only(model.hard.length, model.totals[0], "pair");
  rowTable({
    host: at("hard"),
    label: "Hard negatives",
    open: (row) => open(row[0]),
    columns: [
      { key: "query", label: "query", cell: ([query]) => [model.queries[query], beginning(model.text(query), cellLength)] },
      { key: "passage", label: "passage", width: "18rem", cell: ([, passage]) => passageCell(model, passage) },
      ...model.listed.map((run, i) => ({ key: "r" + i, label: "rank in " + model.runs[run], number: true, width: "6rem", cell: ([, , ranks]) => (ranks[i] === null ? "–" : String(ranks[i])) })),
      { key: "score", label: "mean of 1 / rank", number: true, width: "6rem", cell: (row) => figureText(row[3]) },
    ],
  }).setRows(model.hard);
  saveButton(model, "hard", model.hard);
}

function passageCell(model, passage) {
  const text = beginning(model.passageText(passage), cellLength);
  return [make("b", {}, model.passages[passage]), ...(text ? [" ", text] : [])];
}

function magnetView(model, open, name, rows, total, meaning) {
  at(name + "-meaning").textContent = rows.length ? meaning + only(rows.length, total, "passage") : "There are none: " + meaning[0].toLowerCase() + meaning.slice(1);
  const queries = at(name + "-queries");
  queries.replaceChildren();
  if (!rows.length) {
    at(name).replaceChildren();
    at("save-" + name).replaceChildren();
    return;
  }
  function openMagnet([passage]) {
    const grades = [];
    for (const query of model.all)
      if (model.listed.some((run) => model.list(run, query).slice(0, model.K).includes(passage)))
        grades.push([query, model.grades(query).get(passage)]);
    queries.replaceChildren(make("p", {}, make("b", {}, model.passages[passage]), ` is in the top ${model.K} of ${counted(grades.length, "query", "queries")}:`,
      ...grades.flatMap(([query, grade]) => [" ", button(model.queries[query], () => open(query), { class: "x-link" }), " ", gradeChip(grade, model)])));
  }
  rowTable({
    host: at(name),
    label: name === "magnets" ? "Magnets" : "Unlabelled passages that many queries retrieve",
    open: openMagnet,
    columns: [
      { key: "passage", label: "passage", cell: ([passage]) => [model.passages[passage], beginning(model.passageText(passage), cellLength)] },
      { key: "queries", label: "queries", number: true, width: "6rem", cell: (row) => String(row[1]) },
      ...(name === "magnets"
        ? [{ key: "junk", label: "labelled as junk", number: true, width: "6rem", cell: (row) => String(row[2]) },
          { key: "relevant", label: "relevant", number: true, width: "6rem", cell: (row) => String(row[3]) },
          { key: "none", label: "no label", number: true, width: "6rem", cell: (row) => String(row[4]) }]
        : []),
    ],
  }).setRows(rows);
  saveButton(model, name, unlabelledPairs(model, rows.map((row) => row[0])));
}
