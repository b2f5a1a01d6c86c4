"use strict";
for (const table of document.querySelectorAll("table.queries")) {
  const body = table.tBodies[0];
  // A query and its passages move together.
  const pairs = () => [...body.querySelectorAll("tr.query")].map((row) => {
    const next = row.nextElementSibling;
    return [row, next && next.classList.contains("passages") ? next : null];
  });
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return cell.dataset.value === "" ? Infinity : Number(cell.dataset.value);
    return cell.textContent.trim().toLowerCase();
  };
  for (const button of table.querySelectorAll("button.sort")) {
    button.addEventListener("click", () => {
      const header = button.closest("th");
      const rising = header.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const column = Number(button.dataset.column);
      const order = pairs().map((pair) => [key(pair[0], column), pair]);
      order.sort(([a], [b]) => {
        if (a === b) return 0;
        if (a === Infinity) return 1;
        if (b === Infinity) return -1;
        return (a < b ? -1 : 1) * (rising ? 1 : -1);
      });
      for (const [, [row, passages]] of order) {
        body.append(row);
        if (passages) body.append(passages);
      }
    });
  }
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.open");
    if (!button) return;
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
  });
}
for (const input of document.querySelectorAll("input[type=search]")) {
  const table = document.getElementById(input.dataset.table);
  const status = input.closest(".controls").querySelector("[role=status]");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.querySelectorAll("tr.query")) {
      const next = row.nextElementSibling;
      const passages = next && next.classList.contains("passages") ? next : null;
      const text = (row.textContent + (passages ? passages.textContent : "")).toLowerCase();
      const matches = words.every((word) => text.includes(word));
      row.hidden = !matches;
      if (passages) passages.hidden = !matches || row.querySelector("button.open").getAttribute("aria-expanded") !== "true";
      shown += matches;
    }
    status.textContent = words.length ? `${shown} found` : "";
  });
}
