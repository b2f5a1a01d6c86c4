// What is shown, as the part of the address after "#", so that a link leads to it.
const worstFirst = (model) => ({ sort: "figure " + model.runs[model.best], descending: !model.higher });

function firstState(model) {
  const first = model.best === 0 && model.runs.length > 1 ? [0, 1] : [0, model.best];
  return { a: first[0], b: model.runs.length > 1 ? first[1] : null, q: null, preset: "all", search: "", filters: {}, ...worstFirst(model) };
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

function presetKeys(model) {
  const ones = model.runs.length > 1 ? ["one", ...model.runs.map((name) => "one " + name)] : [];
  return ["none", "pool", ...ones, "junk", "all"];
}

/** The state of an address and what of it cannot be shown; null if the address holds no state. */
function stateOf(model, hash) {
  if (!hash.includes("=")) return null;
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const first = firstState(model);
  const state = firstState(model);
  const problems = [];
  const short = (value) => "“" + (value.length > 60 ? value.slice(0, 60) + "…" : value) + "”";
  /** Take a part of the address if the page has what it names. */
  function take(has, what, value, change) {
    if (has) Object.assign(state, change);
    else problems.push(`The link names ${what} ${short(value)}, which this page does not have; it is ignored.`);
  }
  for (const [key, value] of given) {
    const run = model.runs.indexOf(value);
    const sort = value.replace(/^-/, "");
    const column = model.columns.findIndex(({ name }) => "by " + name === key);
    if (key === "k") {
      if (value !== String(model.K)) problems.push(`The link is to K = ${short(value)}, and this page is at K = ${model.K}.`);
    } else if (key === "a" || key === "b") take(run >= 0, "the run", value, model.runs.length > 1 ? { [key]: run } : {});
    else if (key === "q") take(model.place(value) !== undefined, "the query", value, { q: model.place(value) });
    else if (key === "preset") take(presetKeys(model).includes(value), "the list", value, { preset: value });
    else if (key === "search") state.search = value;
    else if (key === "sort") take(columnsOf(model).some((each) => each.key === sort), "the order", value, { sort, descending: value.startsWith("-") });
    else if (column >= 0)
      take(model.columns[column].words.includes(value), "the value", value, { filters: { ...state.filters, [column]: value } });
    else take(false, key.startsWith("by ") ? "the column" : "the part", key.replace(/^by /, ""));
  }
  if (state.a === state.b) {
    if (given.has("a") && given.has("b")) problems.push("The link names one run twice; another one takes the second place.");
    state[given.has("b") && !given.has("a") ? "a" : "b"] = [first.b, first.a].find((run) => run !== state.a);
  }
  return { state, problems };
}

/** The address of a state: K, the runs and the query, and whatever is not as it is at first. */
function addressOf(model, state) {
  const parts = new URLSearchParams();
  parts.set("k", model.K);
  if (state.b !== null) {
    parts.set("a", model.runs[state.a]);
    parts.set("b", model.runs[state.b]);
  }
  if (state.q !== null) parts.set("q", model.queries[state.q]);
  if (state.preset !== "all") parts.set("preset", state.preset);
  if (state.search) parts.set("search", state.search);
  const first = worstFirst(model);
  if (state.sort !== first.sort || state.descending !== first.descending) parts.set("sort", (state.descending ? "-" : "") + state.sort);
  for (const [column, value] of Object.entries(state.filters)) parts.append("by " + model.columns[column].name, value);
  return "#" + parts;
}
