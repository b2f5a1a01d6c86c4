// The page on which a person grades passages, one after the other.
const task = JSON.parse(document.getElementById("task").textContent);
const at = (id) => document.getElementById(id);
const storageKey = "rag-selectivity:annotation:" + task.task;
const longest = 180; // seconds that count at most for one passage: whoever takes longer is away
let answers = {}; // item: {grade, skipped, note, answered, seconds}
let drafts = {}; // item: a note that has no grade yet
let undone = {}; // item: when its answer was undone
let current = null;
let keeps = true;
let unsaved = false;
let shownAt = 0;
let seconds = 0;

// -- what is kept ------------------------------------------------------------------------------

const isAnswer = (each) =>
  each !== null && typeof each === "object" && (each.skipped === true || task.grades.includes(each.grade));

function merge(others, withdrawn = {}) {
  for (const [item, time] of Object.entries(withdrawn)) undone[item] = Math.max(time, undone[item] || 0);
  for (const [item, other] of Object.entries(others))
    if (item in task.items && isAnswer(other) && !(answers[item]?.answered >= other.answered)) answers[item] = other;
  for (const item of Object.keys(answers)) if (answers[item].answered <= undone[item]) delete answers[item];
}

function keep() {
  unsaved = true;
  try {
    localStorage.setItem(storageKey, JSON.stringify({ answers, drafts, undone }));
    keeps = true;
  } catch {
    keeps = false;
    problem("This browser does not keep your answers. Save them as a file before you close the page.");
  }
}

function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(storageKey) || "{}");
    merge(kept.answers || {}, kept.undone);
    drafts = Object.assign({}, kept.drafts, drafts);
  } catch {
    keeps = false;
  }
}

function result() {
  const rows = Object.keys(answers).map(Number).sort((a, b) => a - b).map((item) => {
    const { grade, skipped, note } = answers[item];
    const [query, , passage] = task.items[item];
    return {
      ...answers[item], item, query: task.queries[query][1], passage, grade: skipped ? null : grade, skipped: !!skipped, note: note || "",
    };
  });
  return {
    format: task.format, version: task.version, task: task.task, annotator: task.annotator, rubric: task.rubric,
    saved: Date.now() / 1000, items: task.items.length, answers: rows,
  };
}

function save() {
  saveFile(task.file, [JSON.stringify(result(), null, 1)], "application/json");
  unsaved = false;
  say("Answers saved as " + task.file);
}

async function load(file) {
  const given = await file.text().then(JSON.parse).catch(() => null);
  if (given === null || given.format !== task.format || !Array.isArray(given.answers))
    return problem(file.name + " is not a file of saved answers.");
  if (given.task !== task.task)
    return problem(file.name + " holds the answers to another task. Load it in the page that it was made with.");
  const rows = given.answers.filter((row) => row !== null && typeof row === "object" && row.item in task.items);
  for (const row of rows) delete undone[row.item];
  merge(Object.fromEntries(rows.map((row) => [row.item, {
    grade: row.grade, skipped: row.skipped === true, note: String(row.note || ""),
    answered: Number(row.answered) || 0, seconds: Number(row.seconds) || 0,
  }])));
  problem("");
  keep();
  next();
  say("Loaded " + rows.length + " answers from " + file.name);
}

// -- what is shown -----------------------------------------------------------------------------

const say = (text) => { at("live").textContent = text; };

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

const isOpen = (item) => !(item in answers);

function show(focus) {
  const answered = Object.keys(answers).length;
  const skipped = Object.values(answers).filter((each) => each.skipped).length;
  at("bar").value = answered;
  at("progress-text").textContent = answered + " of " + task.items.length + " done";
  const done = current === null;
  for (const id of ["work", "grading", "extras", "save"]) at(id).hidden = done;
  at("done").hidden = !done;
  at("undo").disabled = at("undo-done").disabled = answered === 0;
  if (done) {
    at("done-text").textContent = answered - skipped + " graded" + (skipped ? ", " + skipped + " skipped." : ".");
    if (focus) at("done-title").focus();
    return;
  }
  const [query, text] = task.items[current];
  const question = task.queries[query][0];
  at("position").textContent = "Passage " + (current + 1) + " of " + task.items.length;
  at("question").textContent = question;
  at("passage").replaceChildren(...marked(text, wordsOf(question)));
  const known = answers[current];
  at("note").value = known ? known.note || "" : drafts[current] || "";
  for (const button of at("grades").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(!!known && !known.skipped && known.grade === Number(button.dataset.grade)));
  seconds = 0;
  shownAt = performance.now();
  if (focus) {
    at("question").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

function next(focus = true) {
  current = [...task.items.keys()].find(isOpen) ?? null;
  show(focus);
}

// -- what the annotator does -------------------------------------------------------------------

function answer(grade) {
  if (current === null) return;
  seconds += document.hidden ? 0 : (performance.now() - shownAt) / 1000;
  answers[current] = {
    grade, skipped: grade === null, note: at("note").value.trim(), answered: Date.now() / 1000,
    seconds: Math.round(10 * Math.min(seconds, longest)) / 10,
  };
  delete drafts[current];
  const what = grade === null ? "Skipped" : "Graded " + grade;
  keep();
  next();
  say(what + ". " + (current === null ? "Every passage is done." : at("position").textContent));
}

function undo() {
  const last = Object.keys(answers).map(Number).sort((a, b) => answers[b].answered - answers[a].answered || b - a)[0];
  if (last === undefined) return;
  if (answers[last].note) drafts[last] = answers[last].note;
  undone[last] = Math.max(Date.now() / 1000, answers[last].answered);
  delete answers[last];
  keep();
  current = last;
  show(true);
  say("Undone. " + at("position").textContent);
}

at("grades").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) answer(Number(button.dataset.grade));
});
const clicks = {
  skip: () => answer(null), undo, "undo-done": undo, save, "save-done": save, load: () => at("file").click(),
  meanings: () => at("meanings").setAttribute("aria-expanded", String(at("grading").classList.toggle("open"))),
};
for (const [id, click] of Object.entries(clicks)) at(id).addEventListener("click", click);
at("file").addEventListener("change", () => {
  const file = at("file").files[0];
  at("file").value = "";
  if (file) load(file);
});
at("note").addEventListener("input", () => {
  if (current === null) return;
  drafts[current] = at("note").value;
  keep();
});
at("note").addEventListener("keydown", (event) => {
  if (event.key === "Escape") at("question").focus();
});
document.addEventListener("keydown", (event) => {
  // A key that is held down must not grade one passage after another.
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !at("keys").checked) return;
  if (event.target.closest("textarea, input[type=file]")) return;
  const key = event.key.toLowerCase();
  if (key === "u") undo();
  else if (current === null) return;
  else if (task.grades.includes(Number(key)) && key.trim()) answer(Number(key));
  else if (key === "s") answer(null);
  else if (key === "n") at("note").focus();
  else return;
  event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) seconds += (performance.now() - shownAt) / 1000;
  else shownAt = performance.now();
});
window.addEventListener("storage", (event) => {
  // The same task in another window.
  if (event.key !== storageKey) return;
  const before = current;
  recall();
  if (before !== null && isOpen(before)) show(false);
  else next(false);
});
window.addEventListener("beforeunload", (event) => {
  if (!keeps && unsaved) event.preventDefault();
});

recall();
next(false);
