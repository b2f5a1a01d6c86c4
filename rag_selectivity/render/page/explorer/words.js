// The words of a query in a text, and the beginning of a text.
const ordinary = new Set(("a about all also am an and any are as at be been but by can could did do does for from had has " +
  "have how i if in into is it its may me my no not of on or our over should so some such than that the their them then " +
  "there these they this those to under was we were what when where which who whom whose why will with would you your")
  .split(" "));
const segmenter = typeof Intl !== "undefined" && Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

const piecesOf = (text) =>
  segmenter ? Array.from(segmenter.segment(text), (each) => each.segment) : text.split(/([^\p{L}\p{N}]+)/u);

/** The words that are marked: those of the query without stop words and single letters. */
function wordsOf(text) {
  const words = piecesOf(text || "").map((piece) => piece.toLowerCase());
  return new Set(words.filter((word) => /[\p{L}\p{N}]/u.test(word) && !ordinary.has(word) && !/^[a-z]$/.test(word)));
}

/** The text as nodes, with the words in <mark>. */
function marked(text, words) {
  const parts = [];
  let plain = "";
  for (const piece of piecesOf(text)) {
    if (words.has(piece.toLowerCase())) {
      parts.push(plain, make("mark", {}, piece));
      plain = "";
    } else plain += piece;
  }
  return [...parts, plain];
}

const beginningLength = 300;

/** The first characters of a text, up to a space; the whole text if it is not much longer. */
function beginningOf(text, length = beginningLength) {
  if (text.length <= length * 1.1) return text;
  const space = text.lastIndexOf(" ", length);
  return text.slice(0, space > length / 2 ? space : length);
}

const beginning = (text, length = beginningLength) => (text ? beginningOf(text.replace(/\s+/g, " "), length) : null);

/** A text with the words marked: its beginning, and a button for the whole. */
function readable(text, words, longest = null, kind = "x-text") {
  const whole = longest !== null && [...text].length > longest ? text + " […]" : text;
  const first = beginningOf(text);
  const paragraph = make("p", { class: kind });
  if (first === text) {
    paragraph.append(...marked(whole, words));
    return [paragraph];
  }
  const toggle = button("", () => show(toggle.getAttribute("aria-expanded") !== "true"), { class: "x-link" });
  function show(all) {
    toggle.setAttribute("aria-expanded", String(all));
    toggle.textContent = all ? "Show less" : "Show whole";
    paragraph.replaceChildren(...marked(all ? whole : first + " …", words));
  }
  show(false);
  return [paragraph, toggle];
}
