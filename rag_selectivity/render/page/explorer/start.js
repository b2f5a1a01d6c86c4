// Puts the parts together, after the page has been painted.
function explore(model) {
  let state = firstState(model);
  let address = location.hash;
  const listKey = () => JSON.stringify([state.preset, state.search, state.sort, state.descending, state.filters]);
  let listedFor = null;

  function show() {
    const anew = listKey() !== listedFor;
    listedFor = listKey();
    queries.show(state, anew);
    pair.show(state);
    reading.show(state);
  }

  /** Apply what the user did; a query and a pair of runs get an entry in the history. */
  function change(how, entry = false) {
    const before = state.q + " " + state.a + " " + state.b;
    how(state);
    address = addressOf(model, state);
    at("note").textContent = "";
    try {
      history[entry && before !== state.q + " " + state.a + " " + state.b ? "pushState" : "replaceState"](null, "", address);
    } catch {
      // Some browsers allow few changes of the address in a short time; the page works without.
    }
    show();
  }

  function open(query) {
    change((each) => { each.q = query; }, true);
    reading.reveal({ focus: true });
  }

  /** Show what the address says. An address without a state is a place on the page, and changes nothing. */
  function read(always) {
    if (!always && location.hash === address) return;
    address = location.hash;
    const given = stateOf(model, location.hash);
    if (given === null && (always || location.hash)) return always && show();
    state = given === null ? firstState(model) : given.state;
    at("note").textContent = given === null ? "" : given.problems.join(" ");
    show();
    if (given !== null && state.q !== null) reading.reveal({ focus: false });
  }

  at("static").hidden = true;
  at("live").hidden = false;
  for (const element of document.querySelectorAll("#x-live [data-measure]")) element.textContent = model.measure;
  at("undefined").textContent = model.undefined
    ? `${counted(model.undefined, "query has", "queries have")} fewer relevant passages in the labels than an answer needs: no list of failures holds them.` : "";
  at("table-note").textContent = model.not_in_table ? `${counted(model.not_in_table, "query is", "queries are")} not in the table of queries.` : "";
  const reading = readingView(model, { open });
  const queries = queriesView(model, { change, open });
  const pair = pairView(model, { change, open });
  labellingView(model, { open });
  window.addEventListener("popstate", () => read(false));
  window.addEventListener("hashchange", () => read(false));
  read(true);
  document.documentElement.dataset.explorer = "ready";
}

const holder = at("data");
if (holder) {
  if (typeof DecompressionStream === "undefined") {
    at("note").textContent = "This browser cannot unpack the data of this part (it has no DecompressionStream), so only the worst queries are listed. " +
      "Chrome 80, Firefox 113, Safari 16.4 and later versions can.";
  } else {
    const begin = () => unpack(holder.textContent).then(explore, () => {
      at("note").textContent = "The data of this part of the page is damaged, so only the worst queries are listed. Make the page again.";
    });
    // After the first paint; a tab in the background paints nothing.
    if (document.hidden) setTimeout(begin);
    else requestAnimationFrame(() => setTimeout(begin));
  }
}
