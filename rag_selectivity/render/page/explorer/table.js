// A table that draws only the rows in view, with headers that sort and rows that the arrow keys move through.
const drawnBeyond = 6; // rows above and below the view

/**
 * columns: [{key, label, sorts, number, width, cell(row)}]. The first one heads the row and holds its button.
 * Methods: setRows(rows), setSort(key, descending), mark(row).
 */
function rowTable({ host, label, columns, open, sort }) {
  let rows = [];
  let active = 0;
  let current = null;
  let height = 60;
  let waiting = false;
  const drawn = new Map(); // position: tr
  const gaps = [0, 1].map(() => make("tr", { class: "x-gap", "aria-hidden": "true" }, make("td", { colspan: columns.length })));
  function buttonOfHead(column, name) {
    const sorts = button("", () => sort(column.key), { class: "x-sort" });
    sorts.append(...breakable(name));
    return sorts;
  }
  const heads = columns.map((column) => {
    const name = shortName(column.label);
    return make("th", { scope: "col", class: column.number ? "x-number" : null, title: name === column.label ? null : column.label },
      ...(column.sorts ? [buttonOfHead(column, name)] : breakable(name)));
  });
  const body = make("tbody");
  const table = make("table", { class: "x-table", "aria-label": label },
    make("colgroup", {}, ...columns.map((column) => {
      const col = make("col");
      if (column.width) col.style.width = column.width;
      return col;
    })),
    make("thead", {}, make("tr", { "aria-rowindex": 1 }, ...heads)), body);
  table.style.minWidth = `calc(${columns.map((column) => column.width || "var(--x-first)").join(" + ")})`;
  const view = make("div", { class: "scroll x-scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  const empty = make("p", { class: "x-empty", hidden: true }, "No query is listed.");
  host.replaceChildren(view, empty);

  const headHeight = () => table.tHead.getBoundingClientRect().height;

  function rowAt(position) {
    const row = rows[position];
    const cells = columns.map((column, i) => {
      const content = make("div", { class: "x-cell" });
      const value = column.cell(row);
      if (i) {
        content.append(...(Array.isArray(value) ? value : [value]));
        return make("td", { class: column.number ? "x-number" : null }, content);
      }
      const [name, more] = value;
      const opens = button(name, () => {
        active = position;
        open(row);
      }, { class: "x-open", "aria-current": row === current ? "true" : null });
      content.append(opens, ...(more ? [make("span", { class: "x-more" }, more)] : []));
      return make("th", { scope: "row" }, content);
    });
    const tr = make("tr", { "aria-rowindex": position + 2 }, ...cells);
    tr.dataset.position = position;
    return tr;
  }

  const buttonOf = (position) => drawn.get(position).querySelector("button.x-open");

  function draw() {
    waiting = false;
    const from = Math.max(0, Math.floor(view.scrollTop / height) - drawnBeyond);
    const shown = Math.ceil((view.clientHeight || 400) / height) + 2 * drawnBeyond;
    const to = Math.min(rows.length, from + shown);
    // First of all, so that the table is never shorter than it will be, and the view stays where it is.
    gaps[0].firstChild.style.height = from * height + "px";
    gaps[1].firstChild.style.height = (rows.length - to) * height + "px";
    for (const [position, tr] of drawn) {
      if (position >= from && position < to) continue;
      // The focus must not fall back to the top of the page.
      if (tr.contains(document.activeElement)) view.focus({ preventScroll: true });
      tr.remove();
      drawn.delete(position);
    }
    let before = gaps[0];
    if (before.parentNode !== body) body.replaceChildren(...gaps);
    for (let position = from; position < to; position++) {
      if (!drawn.has(position)) {
        drawn.set(position, rowAt(position));
        before.after(drawn.get(position));
      }
      before = drawn.get(position);
    }
    const tabbed = drawn.has(active) ? active : Math.min(to - 1, Math.ceil(view.scrollTop / height));
    for (const position of drawn.keys()) buttonOf(position).tabIndex = position === tabbed ? 0 : -1;
  }

  function redraw() {
    for (const tr of drawn.values()) tr.remove();
    drawn.clear();
    draw();
    const first = drawn.values().next().value;
    const real = first ? first.getBoundingClientRect().height : 0;
    if (real && Math.abs(real - height) > 0.01) {
      height = real;
      draw();
    }
  }

  function moveTo(position) {
    active = Math.max(0, Math.min(rows.length - 1, position));
    const top = active * height;
    const room = view.clientHeight - headHeight();
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + height > view.scrollTop + room) view.scrollTop = top + height - room;
    draw();
    buttonOf(active).focus({ preventScroll: true });
  }

  view.addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  });
  body.addEventListener("keydown", (event) => {
    const tr = event.target.closest("tr");
    if (!tr || event.ctrlKey || event.metaKey || event.altKey) return;
    const position = Number(tr.dataset.position);
    const page = Math.max(1, Math.floor((view.clientHeight - headHeight()) / height) - 1);
    const goals = {
      ArrowDown: position + 1, ArrowUp: position - 1, PageDown: position + page, PageUp: position - page,
      Home: 0, End: rows.length - 1,
    };
    if (!(event.key in goals)) return;
    event.preventDefault();
    moveTo(goals[event.key]);
  });
  window.addEventListener("resize", () => view.clientHeight && redraw());

  return {
    setRows(listed) {
      rows = listed;
      active = Math.max(0, current === null ? 0 : rows.indexOf(current));
      table.setAttribute("aria-rowcount", rows.length + 1);
      view.hidden = !rows.length;
      empty.hidden = rows.length > 0;
      view.scrollTop = 0;
      redraw();
    },
    setSort(key, descending) {
      columns.forEach((column, i) => {
        if (column.key === key) heads[i].setAttribute("aria-sort", descending ? "descending" : "ascending");
        else heads[i].removeAttribute("aria-sort");
      });
    },
    mark(row) {
      current = row;
      for (const [position, tr] of drawn) {
        const opens = tr.querySelector("button.x-open");
        if (rows[position] === row) opens.setAttribute("aria-current", "true");
        else opens.removeAttribute("aria-current");
      }
    },
  };
}
