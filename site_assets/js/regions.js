/**
 * Puts Python's HTML and texts in their places, and marks the figures that changed. No figure is made here.
 */

/** @type {Map<string, string>} the HTML that each region holds */
const held = new Map();

/** @type {Map<string, string> | null} figures as they stood before the present edit, by key */
let before = null;

/** @param {string} name @returns {NodeListOf<HTMLElement>} */
const regionElements = (name) => document.querySelectorAll(`[data-region="${CSS.escape(name)}"]`);

/** Remember the figures as they stand: what changes from now on is marked against them. */
export function rememberFigures() {
  before = figuresIn(document);
}

/** Forget them: a whole new scenario is no change of the old one. */
export function forgetFigures() {
  before = null;
}

/** How long a changed figure stays marked. */
const MARKED_MS = 1500;
let fading = 0;

/**
 * Replace what a region holds. Open disclosures stay open, the focused element keeps the focus.
 * @param {string} name
 * @param {string} html
 */
export function swap(name, html) {
  if (held.get(name) === html) return;
  held.set(name, html);
  for (const region of regionElements(name)) {
    const open = [...region.querySelectorAll("details[open][id]")].map((element) => element.id);
    const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
    const shown = before === null ? null : figuresIn(region);
    region.innerHTML = html;
    if (shown) markChanges(region, shown);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
}

/** @param {ParentNode} place @returns {Map<string, string>} the figures in it, by key */
function figuresIn(place) {
  return new Map([...place.querySelectorAll("[data-fig]")].map((element) => [element.dataset.fig, element.textContent]));
}

/** @param {HTMLElement} region @param {Map<string, string>} shown what stood there until now */
function markChanges(region, shown) {
  for (const figure of region.querySelectorAll("[data-fig]")) {
    const key = figure.dataset.fig;
    const text = figure.textContent;
    const was = before.get(key);
    if (was === undefined || was === text) continue;
    figure.dataset.was = was;
    if (shown.get(key) !== text) figure.classList.add("em-new");
  }
  clearTimeout(fading);
  fading = setTimeout(unmark, MARKED_MS);
}

function unmark() {
  for (const figure of document.querySelectorAll(".em-new")) figure.classList.remove("em-new");
}

/**
 * Set every element that shows the text `name`.
 * @param {string} name
 * @param {string} text
 */
export function fill(name, text) {
  for (const element of document.querySelectorAll(`[data-text="${CSS.escape(name)}"]`)) {
    if (element.textContent !== text) element.textContent = text;
  }
}

/** @param {{regions: Record<string, string>, texts: Record<string, string>}} answer */
export function show(answer) {
  for (const [name, html] of Object.entries(answer.regions)) swap(name, html);
  for (const [name, text] of Object.entries(answer.texts)) fill(name, text);
}
