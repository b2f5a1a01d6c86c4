// What to label next: hard negatives and magnets, and their pairs without a label as a file for a judge or for people.
const cellLength = 110; // characters of a text that a cell of a table has room for

function labellingView(model, { open }) {
  const K = model.K;
  const count = (label, place) => ({ key: label, label, number: true, width: "6rem", cell: (row) => String(row[place]) });
  labellingTable(model, "hard", "hard-negatives.csv", model.hard.map(([query, passage]) => [query, passage]), {
    label: "Hard negatives",
    meaning: model.listed.length > 1
      ? `Passages without a label that at least two runs have in the top ${K}, ordered by the mean of 1 / rank over all runs (0 for a run that does not have it there).`
      : `Passages without a label in the top ${K} of the run, ordered by 1 / rank.`,
    open: ([query]) => open(query),
    columns: [
      { key: "query", label: "query", cell: ([query]) => [model.queries[query], beginning(model.text(query), cellLength)] },
      { key: "passage", label: "passage", width: "18rem", cell: ([, passage]) =>
        [make("b", {}, model.passages[passage]), " ", beginning(model.passageText(passage), cellLength) || ""] },
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
  at("labelling").hidden = !model.hard.length && !model.magnets.length;
}

/** One of the two tables, if it has a row, with what it means, and the button that saves its pairs. */
function labellingTable(model, name, file, pairs, { label, meaning, ...table }) {
  const rows = model[name];
  if (!rows.length) return;
  const more = rows.length < model.totals[name] ? ` The first ${rows.length} of ${model.totals[name].toLocaleString("en")} are listed.` : "";
  const host = make("div", { id: "x-" + name });
  at("labelling").append(make("h4", {}, label), make("p", { class: "muted" }, meaning + more), host,
    make("p", { id: `x-${name}-queries`, "aria-live": "polite" }), ...(pairs.length ? saving(model, name, pairs, file) : []));
  rowTable({ host, label, ...table }).setRows(rows);
}

/** The button that saves pairs as a table of query_id and passage_id, and the commands that read it. */
function saving(model, name, pairs, file) {
  const said = make("span", { role: "status", class: "muted" });
  const cell = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  function save() {
    const rows = pairs.map(([query, passage]) => cell(model.queries[query]) + "," + cell(model.passages[passage]) + "\n");
    saveFile(file, ["query_id,passage_id\n", ...rows], "text/csv");
    said.textContent = `${counted(pairs.length, "pair")} saved as ${file}.` +
      (rows.some((row) => /(^|,)"?[=+@\t\r-]/.test(row)) ? " A program for sheets would compute ids that begin with =, +, - or @ as formulas." : "");
  }
  const command = (who, words) => make("p", { class: "muted" }, who, make("code", {}, `rag-selectivity ${words}`));
  return [
    make("div", { id: "x-save-" + name }, button(`Save ${counted(pairs.length, "pair")} without a label as ${file}`, save, { class: "x-button" }), " ", said),
    command("For a judge: ", `grade --queries queries.jsonl --corpus corpus.jsonl --pool ${file} --store graded.db --model NAME`),
    command("For people: ", `labels draw --queries queries.jsonl --corpus corpus.jsonl --draw file:${file} graded.db --output task.html`),
  ];
}

/** The passages in the top K of any run. */
const retrieved = (model, query) => new Set(model.listed.flatMap((run) => model.list(run, query).slice(0, model.K)));

const unlabelledPairs = (model, passages) => model.all.flatMap((query) =>
  [...retrieved(model, query)].filter((passage) => passages.has(passage) && !model.grades(query).has(passage)).map((passage) => [query, passage]));
