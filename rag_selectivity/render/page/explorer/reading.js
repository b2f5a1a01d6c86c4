// A query with the passages of one run, or of two runs side by side.
function readingView(model, { open }) {
  const place = at("reading");
  let joined = []; // [passage, li]

  function highlight(passage) {
    for (const [of, item] of joined) item.classList.toggle("x-same", of === passage);
  }

  function rankIn(run, query, passage) {
    const rank = model.list(run, query).indexOf(passage);
    return rank < 0 ? null : rank + 1;
  }

  function itemOf(query, passage, rank, run, other, words) {
    const head = make("p", { class: "x-head" }, gradeChip(model.grades(query).get(passage), model), " ", make("code", {}, model.passages[passage]), " ");
    const first = rankIn(run, query, passage);
    if (first !== rank) head.append(make("span", { class: "muted" }, `copy of rank ${first}`));
    else if (other !== null && model.list(other, query)) {
      const there = rankIn(other, query, passage);
      if (there === null) head.append(make("span", { class: "muted" }, `not in the first ${model.candidates} of ${model.runs[other]}`));
      else head.append(button(`= rank ${there} in ${model.runs[other]}`, () => jump(passage, other), { class: "x-link" }));
    }
    const reason = model.reason(query, passage);
    const text = model.passageText(passage);
    const item = make("li", { value: rank, tabindex: -1 }, head,
      reason ? make("p", { class: "x-reason" }, make("span", { class: "muted" }, "Reason: "), reason) : null,
      ...(text ? readable(text, words, model.longest) : []));
    item.dataset.run = run;
    for (const event of ["mouseenter", "focusin"]) item.addEventListener(event, () => highlight(passage));
    for (const event of ["mouseleave", "focusout"]) item.addEventListener(event, () => highlight(null));
    joined.push([passage, item]);
    return item;
  }

  /** Move to the same passage in a run's column. */
  function jump(passage, run) {
    const find = () => joined.find(([of, item]) => of === passage && Number(item.dataset.run) === run);
    if (!find()) for (const more of place.querySelectorAll("button.x-rest")) more.click();
    if (!find()) return;
    find()[1].focus();
    find()[1].scrollIntoView({ block: "nearest" });
  }

  function columnOf(query, run, other, words) {
    const list = model.list(run, query);
    const heading = make("h5", {}, runName(model, run), ` ${figureText(model.figure(run, query))}`);
    const why = !list ? "The page has no list of this run." : "The run retrieved nothing for this query.";
    if (!list || !list.length) return make("div", {}, heading, make("p", {}, why));
    const items = list.map((passage, i) => () => itemOf(query, passage, i + 1, run, other, words));
    const ordered = make("ol", {}, ...items.slice(0, model.K).map((item) => item()));
    const more = button(`Show ranks ${model.K + 1} to ${list.length}`, () => {
      ordered.append(...items.slice(model.K).map((item) => item()));
      more.remove();
    }, { class: "x-button x-rest" });
    return make("div", {}, heading, ordered, list.length > model.K ? more : null);
  }

  function foundBy(query, name, passages, run) {
    const entries = [...passages].flatMap((passage) => [" ", button(model.passages[passage], () => jump(passage, run), { class: "x-link" }), " ", gradeChip(model.grades(query).get(passage), model)]);
    return make("div", {}, make("dt", {}, name), make("dd", {}, passages.length ? counted(passages.length, "relevant passage") + ":" : "none", ...entries));
  }

  function foundAlone(query, a, b) {
    if (!model.list(a, query) || (b !== null && !model.list(b, query))) return null;
    const [inA, inB] = [model.found(a, query), b === null ? new Set() : model.found(b, query)];
    const missed = model.relevant[query] - new Set([...inA, ...inB]).size;
    const elsewhere = make("div", {}, make("dt", {}, b === null ? "Not found" : "In neither"), make("dd", {}, missed ? counted(missed, "relevant passage") : "none"));
    const found = b === null ? [["Found", [...inA], a]] : [
      ["Only " + model.runs[a], [...inA].filter((passage) => !inB.has(passage)), a],
      ["Only " + model.runs[b], [...inB].filter((passage) => !inA.has(passage)), b],
      ["Both", [...inA].filter((passage) => inB.has(passage)), a],
    ];
    return make("dl", { class: "x-found" }, ...found.map((each) => foundBy(query, ...each)), elsewhere);
  }

  /** Why the passages of a query have no texts; null where they have them, or none were given. */
  function whyNoTexts(query) {
    if (!model.leftOut(query)) return null;
    return make("p", { class: "muted x-left-out" },
      `The texts of this query's passages are not on this page, so that it stays small. It has those of the ` +
      `${model.texted.length.toLocaleString("en")} worst of ${counted(model.all.length, "query", "queries")}.`);
  }

  return {
    show(state) {
      joined = [];
      const { q: query, a, b } = state;
      if (query === null) {
        place.replaceChildren(make("p", { class: "muted" }, "Choose a query in one of the tables to see what it retrieved."));
        return;
      }
      const words = wordsOf(model.text(query));
      const cells = model.columns.map(({ name }, column) => `${name}: ${model.cell(column, query) || "–"}`);
      const title = make("h4", { id: "x-query", tabindex: -1 }, "Query ", model.queries[query]);
      const known = model.lists
        ? [make("p", { class: "muted" }, `Relevant passages in the top ${model.K} (grade ${model.rel} or higher):`), foundAlone(query, a, b), whyNoTexts(query),
          make("div", { class: b === null ? "x-columns x-single" : "x-columns" }, columnOf(query, a, b, words), b === null ? null : columnOf(query, b, a, words))]
        : [make("p", {}, ...model.runs.flatMap((_, run) => [runName(model, run), ` ${figureText(model.figure(run, query))} `])),
          make("p", { class: "muted" }, "The page was made without the runs, so it has no passages.")];
      place.replaceChildren(...[title, ...(model.text(query) ? readable(model.text(query), new Set(), null, "x-question") : []),
        cells.length ? make("p", { class: "muted" }, cells.join(", ")) : null, ...known].filter(Boolean));
    },
    reveal({ focus }) {
      if (!at("query")) return;
      if (focus) at("query").focus({ preventScroll: true });
      at("query").scrollIntoView({ block: "start" });
    },
  };
}
