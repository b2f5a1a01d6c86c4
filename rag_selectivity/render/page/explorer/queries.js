// The table of queries: lists of failures, search, filters, order, and the mean figures of what is listed.
const mostValues = 300; // of a column with a menu
const byName = new Intl.Collator("en", { numeric: true });

/** What each list holds, in one sentence. */
function presetMeanings(model) {
  const hits = model.m === 1 ? `a relevant passage (grade ${model.rel} or higher)` : `${model.m} relevant passages (grade ${model.rel} or higher)`;
  const share = model.much === 0.5 ? "half" : Math.round(100 * model.much) + " %";
  return {
    none: ["No run answers", `No run has ${hits} in its top ${model.K}.`],
    pool: ["No pool has the evidence", `No run has ${hits} in its pool, which is its whole list where it was given no pool.`],
    one: ["Only one run answers", `Exactly one run has ${hits} in its top ${model.K}.`],
    junk: ["Much junk on top", `In at least one run, at least ${share} of the top ${model.K} is junk (grade ${model.junk} or lower); ` +
      `passages without a label ${model.unlabelled_is_junk ? "count as junk" : "do not count"}.`],
    all: ["All", "All queries of the labels."],
  };
}

function inPreset(model, query, preset) {
  if (preset === "all") return true;
  if (preset.startsWith("one ")) return model.runs[model.only[query]] === preset.slice(4);
  return model.presets[query].includes(preset);
}

/** The queries that a state lists, in its order; figures that are undefined stand last. */
function listedQueries(model, state) {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const filters = Object.entries(state.filters);
  const listed = model.all.filter((query) =>
    inPreset(model, query, state.preset) &&
    filters.every(([column, value]) => model.cell(column, query) === value) &&
    words.every((word) => model.haystack(query).includes(word)));
  const { value } = columnsOf(model).find((each) => each.key === state.sort);
  const keys = new Map(listed.map((query) => [query, value(query)]));
  const sign = state.descending ? -1 : 1;
  return listed.sort((one, other) => {
    const [x, y] = [keys.get(one), keys.get(other)];
    if (x === null || y === null) return (x === null) - (y === null) || one - other;
    return sign * (typeof x === "string" ? byName.compare(x, y) : x - y) || one - other;
  });
}

function queriesView(model, { change, open }) {
  const meanings = presetMeanings(model);
  const table = rowTable({
    host: at("queries"),
    label: "Queries",
    open,
    sort: (key) => change((state) => {
      state.descending = state.sort === key ? !state.descending : key.startsWith("figure ") && !model.higher;
      state.sort = key;
    }),
    columns: columnsOf(model).map((column, i) => ({
      ...column, sorts: true,
      cell: (query) => (!i ? [column.value(query), beginning(model.text(query))] : column.number ? figureText(column.value(query)) : column.value(query) || "–"),
    })),
  });
  at("search").addEventListener("input", () => change((state) => { state.search = at("search").value; }));
  at("clear").addEventListener("click", () => change((state) => Object.assign(state, { preset: "all", search: "", filters: {} })));

  const counts = new Map(presetKeys(model).map((key) => [key, model.all.filter((query) => inPreset(model, query, key)).length]));
  const presets = new Map(presetKeys(model).map((key) => {
    const of = key.startsWith("one ") ? "only " + shortName(key.slice(4)) : meanings[key][0];
    return [key, button(`${of}: ${counts.get(key).toLocaleString("en")}`, () => change((state) => { state.preset = key; }), { class: key.startsWith("one ") ? "x-preset x-part" : "x-preset" })];
  }));
  at("presets").replaceChildren(...presets.values());

  const menus = model.columns.map(({ name, words }, column) => {
    if (words.length > mostValues) return [null, make("span", { class: "muted" }, `${shortName(name)} has ${counted(words.length, "value")}: use the search.`)];
    const values = [...words].filter(Boolean).sort(byName.compare);
    const numbers = new Map();
    for (const query of model.all) numbers.set(model.cell(column, query), (numbers.get(model.cell(column, query)) || 0) + 1);
    const menu = make("select", {}, make("option", { value: "" }, "all"),
      ...values.map((value, i) => make("option", { value: String(i + 1) }, `${value} (${numbers.get(value).toLocaleString("en")})`)));
    menu.addEventListener("change", () => change((state) => {
      delete state.filters[column];
      if (menu.value) state.filters[column] = values[Number(menu.value) - 1];
    }));
    menu.showValue = (value) => { menu.value = value === undefined ? "" : String(values.indexOf(value) + 1); };
    return [menu, make("label", {}, shortName(name) + " ", menu)];
  });
  at("filters").replaceChildren(...menus.map(([, label]) => label));

  function showMeans(listed, sliced) {
    at("means").replaceChildren(...model.runs.map((_, run) => {
      const known = listed.filter((query) => model.figure(run, query) !== null);
      const weight = (query) => (model.weights ? model.weights[query] : 1);
      const total = known.reduce((sum, query) => sum + weight(query), 0);
      const mean = known.length ? known.reduce((sum, query) => sum + weight(query) * model.figure(run, query), 0) / total : null;
      const of = `n = ${known.length.toLocaleString("en")}${model.weights ? ", weighted" : ""}`;
      return make("li", {}, runName(model, run), ` ${figureText(mean)} `, make("span", { class: "muted" }, of));
    }));
    at("slice").hidden = !sliced;
  }

  return {
    show(state, listsAnew) {
      if (listsAnew) {
        const listed = listedQueries(model, state);
        const total = model.all.length;
        at("count").textContent = listed.length === total
          ? `All ${counted(total, "query", "queries")} are listed.`
          : `${listed.length.toLocaleString("en")} of ${counted(total, "query", "queries")} ${listed.length === 1 ? "is" : "are"} listed.`;
        at("meaning").textContent = state.preset.startsWith("one ")
          ? `${state.preset.slice(4)} is the only run that answers: ${meanings.one[1]}` : meanings[state.preset][1];
        for (const [key, preset] of presets) {
          preset.setAttribute("aria-pressed", String(key === state.preset));
          // A run that is never the only one needs no button, unless a link leads to it.
          preset.hidden = key.startsWith("one ") && !counts.get(key) && key !== state.preset;
        }
        if (at("search").value !== state.search) at("search").value = state.search;
        menus.forEach(([menu], column) => menu && menu.showValue(state.filters[column]));
        showMeans(listed, listed.length < total);
        table.setSort(state.sort, state.descending);
        table.setRows(listed);
      }
      table.mark(state.q);
    },
  };
}
