// A query with the passages of one run, or of two runs side by side.
function readingView(model, { open }) {
  const place = at("reading");
  let joined = []; // [passage, run, li]

  const rankIn = (run, query, passage) => model.list(run, query).indexOf(passage) + 1;
  const chip = (query, passage) => gradeChip(model.grades(query).get(passage), model);

  function itemOf(query, passage, rank, run, other, words) {
    const head = make("p", { class: "x-head" }, chip(query, passage), " ", make("code", {}, model.passages[passage]), " ");
    const first = rankIn(run, query, passage);
    const there = other !== null && model.list(other, query) ? rankIn(other, query, passage) : null;
    if (first !== rank) head.append(make("span", { class: "muted" }, `copy of rank ${first}`));
    else if (there) head.append(button(`= rank ${there} in ${model.runs[other]}`, () => jump(passage, other), { class: "x-link" }));
    else if (there === 0) head.append(make("span", { class: "muted" }, `not in the first ${model.candidates} of ${model.runs[other]}`));
    const reason = model.reason(query, passage);
    const text = model.passageText(passage);
    const item = make("li", { value: rank, tabindex: -1 }, head,
      reason ? make("p", { class: "x-reason" }, make("span", { class: "muted" }, "Reason: "), reason) : null,
      ...(text ? readable(text, words, model.longest) : []));
    for (const [event, same] of [["mouseenter", true], ["focusin", true], ["mouseleave", false], ["focusout", false]])
      item.addEventListener(event, () => { for (const [of, , each] of joined) each.classList.toggle("x-same", same && of === passage); });
    joined.push([passage, run, item]);
    return item;
  }

  /** Move to the same passage in a run's column. */
  function jump(passage, run) {
    const find = () => joined.find(([of, column]) => of === passage && column === run);
    if (!find()) for (const more of place.querySelectorAll("button.x-rest")) more.click();
    if (!find()) return;
    find()[2].focus();
    find()[2].scrollIntoView({ block: "nearest" });
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

  /** What each of two runs found alone, what both did, and how many relevant passages neither did. */
  function found(query, a, b) {
    if (!model.list(a, query) || (b !== null && !model.list(b, query))) return null;
    const [inA, inB] = [model.found(a, query), b === null ? new Set() : model.found(b, query)];
    const only = (one, other) => [...one].filter((passage) => !other.has(passage));
    const groups = b === null ? [["Found", [...inA], a]] : [
      ["Only " + model.runs[a], only(inA, inB), a],
      ["Only " + model.runs[b], only(inB, inA), b],
      ["Both", [...inA].filter((passage) => inB.has(passage)), a],
    ];
    const missed = model.relevant[query] - new Set([...inA, ...inB]).size;
    const group = (name, count, ...entries) => make("div", {}, make("dt", {}, name), make("dd", {}, count ? counted(count, "relevant passage") : "none", ...entries));
    const link = (run) => (passage) => [" ", button(model.passages[passage], () => jump(passage, run), { class: "x-link" }), " ", chip(query, passage)];
    return make("dl", { class: "x-found" }, ...groups.map(([name, passages, run]) => group(name, passages.length, ...passages.flatMap(link(run)))),
      group(b === null ? "Not found" : "In neither", missed));
  }

  function passagesOf(query, a, b, words) {
    if (!model.lists)
      return [make("p", {}, ...model.runs.flatMap((_, run) => [runName(model, run), ` ${figureText(model.figure(run, query))} `])),
        make("p", { class: "muted" }, "The page was made without the runs, so it has no passages.")];
    const noTexts = "The texts of this query's passages are not on this page, so that it stays small.";
    return [make("p", { class: "muted" }, `Relevant passages in the top ${model.K} (grade ${model.rel} or higher):`), found(query, a, b),
      model.leftOut(query) ? make("p", { class: "muted x-left-out" }, noTexts) : null,
      make("div", { class: b === null ? "x-columns x-single" : "x-columns" }, columnOf(query, a, b, words), b === null ? null : columnOf(query, b, a, words))];
  }

  return {
    show({ q: query, a, b }) {
      joined = [];
      if (query === null) return place.replaceChildren(make("p", { class: "muted" }, "Choose a query in one of the tables to see what it retrieved."));
      const text = model.text(query);
      const cells = model.columns.map(({ name }, column) => `${name}: ${model.cell(column, query) || "–"}`).join(", ");
      place.replaceChildren(...[make("h4", { id: "x-query", tabindex: -1 }, "Query ", model.queries[query]),
        ...(text ? readable(text, new Set(), null, "x-question") : []), cells ? make("p", { class: "muted" }, cells) : null,
        ...passagesOf(query, a, b, wordsOf(text))].filter(Boolean));
    },
    reveal({ focus }) {
      if (focus) at("query").focus({ preventScroll: true });
      at("query").scrollIntoView({ block: "start" });
    },
  };
}
