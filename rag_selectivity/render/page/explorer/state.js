// What is shown, as the part of the address after "#", so that a link leads to it.
function firstState(model) {
  return {
    a: 0, b: model.runs.length > 1 ? model.best || 1 : null, q: null,
    preset: "all", search: "", filters: {}, sort: "figure " + model.runs[model.best], descending: !model.higher,
  };
}

/** The columns of the table of queries, each with its value of a query; null stands last. */
function columnsOf(model) {
  const figures = model.runs.map((name, run) => (
    { key: "figure " + name, label: name, number: true, width: "5.6rem", value: (query) => model.figure(run, query) }));
  const diagnosis = { key: "diagnosis", label: "diagnosis of " + model.runs[model.best], width: "9rem", value: (query) => model.diagnosis(model.best, query) };
  const given = model.columns.map(({ name }, column) => (
    { key: "column " + name, label: name, width: "8rem", value: (query) => model.cell(column, query) || null }));
  return [{ key: "id", label: "query", value: (query) => model.queries[query] }, ...figures, ...(model.diagnoses.words.length ? [diagnosis] : []), ...given];
}

/** The state of an address and what of it the page does not have; null if the address holds no state. */
function stateOf(model, hash) {
  if (!hash.includes("=")) return null;
  const state = firstState(model);
  const take = (known, change) => known && Object.assign(state, change);
  const takeRun = (place) => (value) => take(model.runs.includes(value), model.runs.length > 1 ? { [place]: model.runs.indexOf(value) } : {});
  const parts = new Map([
    ["k", (value) => value === String(model.K)],
    ["a", takeRun("a")],
    ["b", takeRun("b")],
    ["q", (value) => take(model.place(value) !== undefined, { q: model.place(value) })],
    ["preset", (value) => take(Object.hasOwn(presetMeanings(model), value), { preset: value })],
    ["search", (value) => take(true, { search: value })],
    ["sort", (value) => {
      const key = value.replace(/^-/, "");
      return take(columnsOf(model).some((each) => each.key === key), { sort: key, descending: value.startsWith("-") });
    }],
    ...model.columns.map(({ name, words }, column) => (
      ["by " + name, (value) => take(words.includes(value), { filters: { ...state.filters, [column]: value } })])),
  ]);
  const unknown = [...new URLSearchParams(hash.slice(1))].filter(([key, value]) => !parts.has(key) || !parts.get(key)(value));
  if (state.a === state.b) state.b = state.a ? 0 : 1;
  const names = unknown.map(([key, value]) => "“" + `${key}=${value}`.slice(0, 60) + "”");
  return { state, problem: names.length ? `This page does not have what the link names, and ignores it: ${names.join(", ")}.` : "" };
}

/** The address of a state: K, the runs and the query, and whatever is not as it is at first. */
function addressOf(model, state) {
  const first = firstState(model);
  const parts = new URLSearchParams({ k: model.K });
  if (state.b !== null) {
    parts.set("a", model.runs[state.a]);
    parts.set("b", model.runs[state.b]);
  }
  if (state.q !== null) parts.set("q", model.queries[state.q]);
  if (state.preset !== first.preset) parts.set("preset", state.preset);
  if (state.search) parts.set("search", state.search);
  if (state.sort !== first.sort || state.descending !== first.descending) parts.set("sort", (state.descending ? "-" : "") + state.sort);
  for (const [column, value] of Object.entries(state.filters)) parts.append("by " + model.columns[column].name, value);
  return "#" + parts;
}
