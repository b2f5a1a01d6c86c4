// A table with headers that sort; it draws a hundred rows, and more when they are asked for. Arrow keys move through the rows.
const rowsAtOnce = 100;

/**
 * columns: [{key, label, sorts, number, width, cell(row)}]. The first one heads the row and holds its button.
 * Methods: setRows(rows), setSort(key, descending), mark(row).
 */
function rowTable({ host, label, columns, open, sort }) {
  let rows = [];
  let current = null;
  const heads = columns.map((column) => {
    const name = column.sorts ? button(column.label, () => sort(column.key), { class: "x-sort" }) : column.label;
    return make("th", { scope: "col", class: column.number ? "x-number" : null, title: column.label }, name);
  });
  const body = make("tbody");
  const table = make("table", { class: "x-table", "aria-label": label },
    make("colgroup", {}, ...columns.map((column) => {
      const col = make("col");
      if (column.width) col.style.width = column.width;
      return col;
    })),
    make("thead", {}, make("tr", {}, ...heads)), body);
  table.style.minWidth = `calc(${columns.map((column) => column.width || "var(--x-first)").join(" + ")})`;
  const view = make("div", { class: "scroll x-scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  const more = button("", () => {
    const next = body.rows.length;
    drawMore();
    body.rows[next].querySelector("button").focus();
  }, { class: "x-button" });
  const empty = make("p", { class: "x-empty", hidden: true }, "No query is listed.");
  host.replaceChildren(view, more, empty);

  function rowAt(row) {
    return make("tr", {}, ...columns.map((column, i) => {
      const value = column.cell(row);
      if (i) return make("td", { class: column.number ? "x-number" : null }, make("div", { class: "x-cell" }, ...[value].flat()));
      const [name, text] = value;
      const opens = button(name, () => open(row), { class: "x-open", "aria-current": row === current ? "true" : null });
      return make("th", { scope: "row" }, make("div", { class: "x-cell" }, opens, text ? make("span", { class: "x-more" }, text) : null));
    }));
  }

  function drawMore() {
    body.append(...rows.slice(body.rows.length, body.rows.length + rowsAtOnce).map(rowAt));
    const left = rows.length - body.rows.length;
    more.hidden = !left;
    more.textContent = `Show ${Math.min(left, rowsAtOnce)} more of ${counted(left, "row")}`;
  }

  body.addEventListener("keydown", (event) => {
    const tr = event.target.closest("tr");
    const next = { ArrowDown: tr && tr.nextElementSibling, ArrowUp: tr && tr.previousElementSibling }[event.key];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    next.querySelector("button").focus();
  });

  return {
    setRows(listed) {
      rows = listed;
      view.hidden = !rows.length;
      empty.hidden = rows.length > 0;
      view.scrollTop = 0;
      body.replaceChildren();
      drawMore();
    },
    setSort(key, descending) {
      columns.forEach((column, i) => { setAttribute(heads[i], "aria-sort", column.key === key ? (descending ? "descending" : "ascending") : null); });
    },
    mark(row) {
      current = row;
      [...body.rows].forEach((tr, i) => { setAttribute(tr.querySelector("button.x-open"), "aria-current", rows[i] === row ? "true" : null); });
    },
  };
}
