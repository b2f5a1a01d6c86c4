// The table of queries: lists of failures, search, filters, order, and the mean figures of what is listed.
const byName = new Intl.Collator("en", { numeric: true });

/** {key: [title, what the list holds, in one sentence]}. */
function presetMeanings(model) {
  const hits = `${model.m === 1 ? "a relevant passage" : model.m + " relevant passages"} (grade ${model.rel} or higher)`;
  return {
    none: ["No run answers", `No run has ${hits} in its top ${model.K}.`],
    pool: ["No pool has the evidence", `No run has ${hits} in its pool, which is its whole list where it was given no pool.`],
    ...(model.runs.length > 1 && { one: ["Only one run answers", `Exactly one run has ${hits} in its top ${model.K}.`] }),
    // Where a passage without a label is junk, nearly every query has much of it.
    ...(!model.unlabelled_is_junk && { junk: ["Much junk on top", `In at least one run, at least half of the top ${model.K} is junk ` +
      `(grade ${model.junk} or lower); passages without a label do not count.`] }),
    all: ["All", "All queries of the labels."],
  };
}

const inPreset = (model, query, preset) => preset === "all" || model.presets[query].includes(preset);

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

/** A menu of the values of a column, each with the number of its queries. */
function filterOf(model, column, change) {
  const { name, words } = model.columns[column];
  const numbers = new Map();
  for (const query of model.all) numbers.set(model.cell(column, query), (numbers.get(model.cell(column, query)) || 0) + 1);
  // The empty value stands for all.
  const values = ["", ...[...words].filter(Boolean).sort(byName.compare)];
  const menu = make("select", {}, ...values.map((value) => make("option", { value }, value ? `${value} (${numbers.get(value).toLocaleString("en")})` : "all")));
  menu.addEventListener("change", () => change((state) => {
    delete state.filters[column];
    if (menu.value) state.filters[column] = menu.value;
  }));
  return [menu, make("label", {}, name + " ", menu)];
}

function queriesView(model, { change, open }) {
  const meanings = presetMeanings(model);
  let shown = null;
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
  const presets = Object.entries(meanings).map(([key, [title]]) => {
    const count = model.all.filter((query) => inPreset(model, query, key)).length;
    return [key, button(`${title}: ${count.toLocaleString("en")}`, () => change((state) => { state.preset = key; }), { class: "x-preset" })];
  });
  at("presets").replaceChildren(...presets.map(([, preset]) => preset));
  const menus = model.columns.map((_, column) => filterOf(model, column, change));
  at("filters").replaceChildren(...menus.map(([, label]) => label));

  function showMeans(listed) {
    at("means").replaceChildren(...model.runs.map((_, run) => {
      const known = listed.filter((query) => model.figure(run, query) !== null);
      const weight = (query) => (model.weights ? model.weights[query] : 1);
      const total = known.reduce((sum, query) => sum + weight(query), 0);
      const mean = known.length ? known.reduce((sum, query) => sum + weight(query) * model.figure(run, query), 0) / total : null;
      const of = `n = ${known.length.toLocaleString("en")}${model.weights ? ", weighted" : ""}`;
      return make("li", {}, runName(model, run), ` ${figureText(mean)} `, make("span", { class: "muted" }, of));
    }));
    at("slice").hidden = listed.length === model.all.length;
  }

  return {
    show(state) {
      const { preset, search, sort, descending, filters } = state;
      const key = JSON.stringify([preset, search, sort, descending, filters]);
      if (key !== shown) {
        shown = key;
        const listed = listedQueries(model, state);
        const total = counted(model.all.length, "query", "queries");
        at("count").textContent = listed.length === model.all.length && listed.length > 1
          ? `All ${total} are listed.` : `${listed.length.toLocaleString("en")} of ${total} ${listed.length === 1 ? "is" : "are"} listed.`;
        at("meaning").textContent = meanings[preset][1];
        for (const [name, each] of presets) each.setAttribute("aria-pressed", String(name === preset));
        if (at("search").value !== search) at("search").value = search;
        menus.forEach(([menu], column) => { menu.value = filters[column] || ""; });
        showMeans(listed);
        table.setSort(sort, descending);
        table.setRows(listed);
      }
      table.mark(state.q);
    },
  };
}
