// What to label next: hard negatives and magnets, and their pairs without a label as a file for a judge or for people.
const cellLength = 110; // characters of a text that a cell of a table has room for

function labellingView(model, { open }) {
  const K = model.K;
  const passageCell = (passage) => [make("b", {}, model.passages[passage]), " ", beginning(model.passageText(passage), cellLength) || ""];
  const count = (label, place) => ({ key: label, label, number: true, width: "6rem", cell: (row) => String(row[place]) });

  labellingTable(model, "hard", "hard-negatives.csv", model.hard.map(([query, passage]) => [query, passage]), {
    label: "Hard negatives",
    meaning: model.listed.length > 1
      ? `Passages without a label that at least two runs have in the top ${K}, ordered by the mean of 1 / rank over all runs (0 for a run that does not have it there).`
      : `Passages without a label in the top ${K} of the run, ordered by 1 / rank.`,
    open: ([query]) => open(query),
    columns: [
      { key: "query", label: "query", cell: ([query]) => [model.queries[query], beginning(model.text(query), cellLength)] },
      { key: "passage", label: "passage", width: "18rem", cell: ([, passage]) => passageCell(passage) },
      ...model.listed.map((run, i) => ({ key: "rank" + i, label: "rank in " + model.runs[run], number: true, width: "6rem", cell: ([, , ranks]) => String(ranks[i] ?? "–") })),
    ],
  });

  labellingTable(model, "magnets", "magnets.csv", unlabelledPairs(model, new Set(model.magnets.map(([passage]) => passage))), {
    label: "Magnets",
    meaning: `Passages in the top ${K} of some run that are labelled as junk (grade ${model.junk} or lower) for at least ${model.magnet_queries[0]} queries, ` +
      `or that at least ${model.magnet_queries[1]} queries retrieve and none has a label for.`,
    open: ([passage]) => at("magnets-queries").replaceChildren(
      make("b", {}, model.passages[passage]), ` is in the top ${K} of:`,
      ...model.all.filter((query) => retrieved(model, query).has(passage)).flatMap((query) =>
        [" ", button(model.queries[query], () => open(query), { class: "x-link" }), " ", gradeChip(model.grades(query).get(passage), model)])),
    columns: [
      { key: "passage", label: "passage", cell: ([passage]) => [model.passages[passage], beginning(model.passageText(passage), cellLength)] },
      count("queries", 1), count("labelled as junk", 2), count("relevant", 3), count("no label", 4),
    ],
  });
}

/** One of the two tables, with what it means, and the button that saves its pairs. */
function labellingTable(model, name, file, pairs, { meaning, ...table }) {
  const rows = model[name];
  const total = model.totals[name];
  at(name + "-meaning").textContent = !model.lists ? "The page was made without the runs, so it does not know what they retrieved."
    : (rows.length ? "" : "There are none. ") + meaning + (rows.length < total ? ` The first ${rows.length} of ${total.toLocaleString("en")} are listed.` : "");
  if (rows.length) rowTable({ host: at(name), ...table }).setRows(rows);
  if (!pairs.length) return;
  const said = make("span", { role: "status", class: "muted" });
  const save = () => {
    savePairs(model, pairs, file);
    const ids = pairs.flatMap(([query, passage]) => [model.queries[query], model.passages[passage]]);
    said.textContent = `${counted(pairs.length, "pair")} saved as ${file}.` +
      (ids.some((id) => /^[=+@\t\r-]/.test(id)) ? " A program for sheets would compute ids that begin with =, +, - or @ as formulas." : "");
  };
  at("save-" + name).replaceChildren(
    button(`Save ${counted(pairs.length, "pair")} without a label as ${file}`, save, { class: "x-button" }), " ", said,
    make("p", { class: "muted" }, "For a judge: ",
      make("code", {}, `rag-selectivity grade --queries queries.jsonl --corpus corpus.jsonl --pool ${file} --store graded.db --model NAME`)),
    make("p", { class: "muted" }, "For people: ",
      make("code", {}, `rag-selectivity labels draw --queries queries.jsonl --corpus corpus.jsonl --draw file:${file} graded.db --output task.html`)));
}

/** The passages in the top K of any run. */
const retrieved = (model, query) => new Set(model.listed.flatMap((run) => model.list(run, query).slice(0, model.K)));

const unlabelledPairs = (model, passages) => model.all.flatMap((query) =>
  [...retrieved(model, query)].filter((passage) => passages.has(passage) && !model.grades(query).has(passage)).map((passage) => [query, passage]));

/** Save pairs as a table of query_id and passage_id. */
function savePairs(model, pairs, name) {
  const cell = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const rows = pairs.map(([query, passage]) => cell(model.queries[query]) + "," + cell(model.passages[passage]) + "\n");
  saveFile(name, ["query_id,passage_id\n", ...rows], "text/csv");
}
