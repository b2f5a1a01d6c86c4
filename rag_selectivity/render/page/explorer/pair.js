// Two runs against each other: the queries that moved from one to the other.
function movedQueries(model, a, b) {
  const counts = { better: 0, same: 0, worse: 0, undefined: 0 };
  const sizes = new Map();
  for (const query of model.all) {
    const [x, y] = [model.figure(a, query), model.figure(b, query)];
    if (x === null || y === null) counts.undefined++;
    else if (x === y) counts.same++;
    else {
      counts[y > x === model.higher ? "better" : "worse"]++;
      sizes.set(query, Math.abs(y - x));
    }
  }
  return { counts, moved: [...sizes.keys()].sort((one, other) => sizes.get(other) - sizes.get(one) || one - other) };
}

function pairView(model, { change, open }) {
  if (model.runs.length < 2) {
    at("pair").remove();
    return { show() {} };
  }
  let shown = null;
  let table = null;
  for (const [name, other] of [["a", "b"], ["b", "a"]]) {
    const menu = at(name);
    menu.replaceChildren(...model.runs.map((run, i) => make("option", { value: i }, run)));
    menu.addEventListener("change", () => change((state) => {
      // The same run twice has no meaning: the two change places.
      if (state[other] === Number(menu.value)) state[other] = state[name];
      state[name] = Number(menu.value);
    }, true));
  }
  at("swap").addEventListener("click", () => change((state) => { [state.a, state.b] = [state.b, state.a]; }, true));

  function tableOf(a, b) {
    const figure = (run) => ({ key: "run" + run, label: model.runs[run], number: true, width: "6.5rem", cell: (query) => figureText(model.figure(run, query)) });
    const alone = (run, other) => ({
      key: "only" + run, label: "relevant only in " + model.runs[run], number: true, width: "8rem",
      cell: (query) => String([...model.found(run, query)].filter((passage) => !model.found(other, query).has(passage)).length),
    });
    const listed = model.listed.includes(a) && model.listed.includes(b);
    return rowTable({
      host: at("moved"),
      label: `Queries that moved from ${model.runs[a]} to ${model.runs[b]}`,
      open,
      columns: [
        { key: "id", label: "query", cell: (query) => [model.queries[query], beginning(model.text(query))] },
        figure(a), figure(b),
        { key: "by", label: "difference", number: true, width: "6.5rem", cell: (query) => signedText(model.figure(b, query) - model.figure(a, query)) },
        ...(listed ? [alone(a, b), alone(b, a)] : []),
      ],
    });
  }

  return {
    show(state) {
      for (const name of ["a", "b"]) at(name).value = String(state[name]);
      const pair = state.a + " " + state.b;
      if (pair !== shown) {
        shown = pair;
        const { counts, moved } = movedQueries(model, state.a, state.b);
        const none = counts.undefined ? ` ${counted(counts.undefined, "query", "queries")} without a figure in one of them.` : "";
        at("moved-count").textContent = `${model.runs[state.b]} is better than ${model.runs[state.a]} in ${counts.better.toLocaleString("en")}, ` +
          `the same in ${counts.same.toLocaleString("en")} and worse in ${counts.worse.toLocaleString("en")} of ${counted(model.all.length, "query", "queries")}.${none}`;
        table = tableOf(state.a, state.b);
        table.setRows(moved);
      }
      table.mark(state.q);
    },
  };
}
