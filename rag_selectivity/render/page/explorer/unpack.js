// The data of the page: unpacked, and read by the numbers of runs, queries and passages.
const at = (id) => document.getElementById("x-" + id);

/** A function of a key that is called once for each. */
function remembered(call) {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) known.set(key, call(key));
    return known.get(key);
  };
}

async function unpack(base64) {
  const packed = atob(base64.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return modelOf(JSON.parse(await new Response(stream).text()));
}

function modelOf(data) {
  const reasons = new Map(data.reasons.map(([query, passage, reason]) => [query + " " + passage, reason]));
  const texted = data.texted && new Set(data.texted);
  const places = new Map(data.queries.map((id, query) => [id, query]));
  for (const lists of data.lists || [])
    lists.forEach((list, query) => list.forEach((passage, i) => { list[i] = passage + data.firsts[query]; }));
  const model = {
    ...data,
    all: data.queries.map((_, query) => query),
    place: (id) => places.get(id),
    text: (query) => (data.query_texts ? data.query_texts[query] : null),
    figure: (run, query) => data.figures[run][query],
    diagnosis: (run, query) => wordOf(data.diagnoses, run, query),
    cell: (column, query) => wordOf(data.columns[column], 0, query),
    /** The passages of a run's list; null where the page has no lists of the run. */
    list: (run, query) => (data.listed.includes(run) ? data.lists[data.listed.indexOf(run)][query] : null),
    /** {passage: grade} of the passages in the lists of a query. */
    grades: remembered((query) => {
      const flat = data.grades[query];
      return new Map(flat.flatMap((passage, i) => (i % 2 ? [] : [[passage, flat[i + 1]]])));
    }),
    reason: (query, passage) => reasons.get(query + " " + passage),
    /** Whether the texts of a query's passages were left out, so that the page stays small. */
    leftOut: (query) => Boolean(texted) && !texted.has(query),
    passageText: (passage) => (data.texts ? data.texts[passage] : null),
    /** The relevant passages in the top K of a run. */
    found(run, query) {
      const grades = model.grades(query);
      const top = (model.list(run, query) || []).slice(0, data.K);
      return new Set(top.filter((passage) => grades.get(passage) >= data.rel));
    },
    haystack: remembered((query) => {
      const cells = data.columns.map((_, column) => model.cell(column, query));
      return [data.queries[query], model.text(query) || "", ...cells].join(" ").toLowerCase();
    }),
  };
  return model;
}

function wordOf(coded, column, query) {
  const code = coded.codes[column][query];
  return code === null ? null : coded.words[code];
}
