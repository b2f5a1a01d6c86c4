// Puts the parts together, after the page has been painted.
function explore(model) {
  at("parts").replaceWith(at("parts").content);
  let state = firstState(model);
  let address = null;
  const show = () => { for (const view of views) view.show(state); };

  /** Apply what the user did; a query gets an entry in the history. */
  function change(how, entry = false) {
    how(state);
    address = addressOf(model, state);
    at("note").textContent = "";
    try {
      history[entry ? "pushState" : "replaceState"](null, "", address);
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
  function read() {
    const given = location.hash === address ? null : stateOf(model, location.hash);
    if (given === null) return;
    address = location.hash;
    state = given.state;
    at("note").textContent = given.problem;
    show();
    if (state.q !== null) reading.reveal({ focus: false });
  }

  const reading = readingView(model, { open });
  const views = [queriesView(model, { change, open }), pairView(model, { change, open }), reading];
  labellingView(model, { open });
  show();
  read();
  window.addEventListener("hashchange", read);
  document.documentElement.dataset.explorer = "ready";
}

const begin = () => unpack(at("data").textContent).then(explore, () => {
  at("note").textContent = "This browser cannot unpack the data of this part, or they are damaged, so only the worst queries are listed. " +
    "Chrome 80, Firefox 113, Safari 16.4 and later versions can.";
});
// After the first paint; a tab in the background paints nothing.
if (document.hidden) setTimeout(begin);
else requestAnimationFrame(() => setTimeout(begin));
