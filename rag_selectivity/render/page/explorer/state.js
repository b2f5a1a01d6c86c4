// What is shown, as the part of the address after "#", so that a link leads to it.
const worstFirst = (model) => ({ sort: "figure " + model.runs[model.best], descending: !model.higher });

function firstState(model) {
  const first = model.best === 0 && model.runs.length > 1 ? [0, 1] : [0, model.best];
  return { a: first[0], b: model.runs.length > 1 ? first[1] : null, q: null, preset: "all", search: "", filters: {}, ...worstFirst(model) };
}

function sortKeys(model) {
  return ["id", ...model.runs.map((name) => "figure " + name), "diagnosis", ...model.columns.map(({ name }) => "column " + name)];
}

function presetKeys(model) {
  const ones = model.runs.length > 1 ? ["one", ...model.runs.map((name) => "one " + name)] : [];
  return ["none", "pool", ...ones, "junk", "all"];
}

/** The state of an address and what of it cannot be shown; null if the address holds no state. */
function stateOf(model, hash) {
  const text = hash.replace(/^#/, "");
  if (!text.includes("=")) return null;
  const given = new URLSearchParams(text);
  const state = firstState(model);
  const problems = [];
  const short = (value) => "“" + (value.length > 60 ? value.slice(0, 60) + "…" : value) + "”";
  const ignored = (what, value) => problems.push(`The link names ${what} ${short(value)}, which this page does not have; it is ignored.`);
  for (const [key, value] of given) {
    if (key === "k") {
      if (value !== String(model.K)) problems.push(`The link is to K = ${short(value)}, and this page is at K = ${model.K}.`);
    } else if (key === "a" || key === "b") {
      const run = model.runs.indexOf(value);
      if (run < 0) ignored("the run", value);
      else if (model.runs.length > 1) state[key] = run;
    } else if (key === "q") {
      if (model.place(value) === undefined) ignored("the query", value);
      else state.q = model.place(value);
    } else if (key === "preset") {
      if (presetKeys(model).includes(value)) state.preset = value;
      else ignored("the list", value);
    } else if (key === "search") state.search = value;
    else if (key === "sort") {
      const name = value.replace(/^-/, "");
      if (sortKeys(model).includes(name)) Object.assign(state, { sort: name, descending: value.startsWith("-") });
      else ignored("the order", value);
    } else if (key.startsWith("by ")) {
      const column = model.columns.findIndex(({ name }) => name === key.slice(3));
      if (column < 0) ignored("the column", key.slice(3));
      else if (!model.columns[column].words.includes(value)) ignored("the value", value);
      else state.filters[column] = value;
    } else ignored("the part", key);
  }
  if (state.a === state.b) {
    const others = [firstState(model).b, firstState(model).a];
    if (given.has("a") && given.has("b")) problems.push("The link names one run twice; another one takes the second place.");
    const other = others.find((run) => run !== state.a);
    if (given.has("b") && !given.has("a")) state.a = other;
    else state.b = other;
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
