// Elements whose contents are text, never markup; figures and files.

/** Set an attribute, empty if it is true; remove it if it is false or nothing. */
function setAttribute(element, name, value) {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : value);
}

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "click") element.addEventListener("click", value);
    else setAttribute(element, name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const button = (label, click, options = {}) => make("button", { type: "button", click, ...options }, label);

/** Three decimals; a number in the middle between two goes to the even one, as everywhere else on the page. */
function threeDecimals(value) {
  const isMiddle = Math.abs((value * 16) % 2) === 1;
  const thousands = Math.floor(value * 1000);
  return (isMiddle ? (thousands + Math.abs(thousands % 2)) / 1000 : value).toFixed(3);
}

/** A number as the rest of the page writes it. */
function figureText(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size >= 999.9995 ? size.toFixed(0) : size >= 0.001 || size < 1e-12 ? threeDecimals(size) : size.toExponential(1).replace(/-(\d)$/, "-0$1");
  return value < 0 && size >= 1e-12 ? "−" + text : text;
}

/** A difference as the rest of the page writes it: with a fourth decimal where three would hide its sign. */
function signedText(value) {
  const size = Math.abs(value);
  const text = size > 0.00005 && size < 0.0005 ? size.toFixed(4) : threeDecimals(size);
  return (Number(text) ? (value > 0 ? "+" : "−") : "") + text;
}

/** Have the browser save a file. */
function saveFile(name, parts, type) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob(parts, { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function counted(count, one, many) {
  return count.toLocaleString("en") + " " + (count === 1 ? one : many || one + "s");
}

/** A run's name with its colour. */
function runName(model, run) {
  const dot = make("span", { class: "x-dot", "aria-hidden": "true" });
  dot.style.clipPath = `var(--shape-${run}, circle())`;
  dot.style.background = `var(--run-${run})`;
  return make("span", { class: "x-run" }, dot, model.runs[run]);
}

function gradeChip(grade, model) {
  if (grade === undefined) return make("span", { class: "x-grade x-none" }, "no label");
  const kind = grade >= model.rel ? "x-relevant" : grade <= model.junk ? "x-junk" : "x-between";
  return make("span", { class: "x-grade " + kind }, "grade " + grade);
}
