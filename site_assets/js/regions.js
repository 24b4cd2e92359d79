/**
 * Puts Python's HTML and texts in their places, and marks the figures that changed. No figure is made here.
 */

/** @type {Map<string, string[]>} the HTML that each region holds, taken apart by `parts` */
const held = new Map();

/** @type {Map<string, string> | null} figures as they stood before the present edit, by key */
let before = null;

/** @param {string} name @returns {NodeListOf<HTMLElement>} */
const regionElements = (name) => document.querySelectorAll(`[data-region="${CSS.escape(name)}"]`);

/** Remember the figures as they stand: what changes from now on is marked against them. */
export function rememberFigures() {
  before = new Map([...document.querySelectorAll("[data-fig]")].map((element) => [element.dataset.fig, element.textContent]));
}

/** Forget them: a whole new scenario is no change of the old one. */
export function forgetFigures() {
  before = null;
}

/** A figure as Python writes it: its key, and its text with at most one element in it. */
const FIGURE = /<span class="em-fig" data-fig="([^"]*)">([^<]*(?:<span[^<]*<\/span>)?)<\/span>/;

/**
 * HTML taken apart: what stands around the figures, then each figure's key and content, in turns of three.
 * @param {string} html
 */
const parts = (html) => html.split(FIGURE);

/** Whether two regions differ in nothing but what their figures say. @param {string[]} one @param {string[]} other */
function alike(one, other) {
  return one.length === other.length && one.every((part, index) => index % 3 === 2 || part === other[index]);
}

/** How long a changed figure stays marked. */
const MARKED_MS = 1500;
let fading = 0;

/**
 * Show a region's HTML. Where only figures changed, only they are written; else open disclosures stay open and the
 * focused element keeps the focus.
 * @param {string} name
 * @param {string} html
 */
export function swap(name, html) {
  const now = parts(html);
  const was = held.get(name);
  held.set(name, now);
  const same = was !== undefined && alike(was, now);
  for (const region of regionElements(name)) {
    if (same) write(region, was, now);
    else replace(region, html);
  }
}

/** What the page held from the start, made by the same core from the same inputs. @param {string} name @param {string} html */
export function adopt(name, html) {
  held.set(name, parts(html));
}

/** @param {HTMLElement} region @param {string[]} was @param {string[]} now */
function write(region, was, now) {
  for (const figure of region.querySelectorAll("[data-was]")) mark(figure);
  for (let index = 2; index < now.length; index += 3) {
    if (was[index] === now[index]) continue;
    const figure = region.querySelector(`[data-fig="${CSS.escape(now[index - 1])}"]`);
    figure.innerHTML = now[index];
    if (mark(figure)) fresh(figure);
  }
}

/** @param {HTMLElement} region @param {string} html */
function replace(region, html) {
  const open = [...region.querySelectorAll("details[open][id]")].map((element) => element.id);
  const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
  const stood = new Map([...region.querySelectorAll("[data-fig]")].map((element) => [element.dataset.fig, element.textContent]));
  region.innerHTML = html;
  if (before !== null) {
    for (const figure of region.querySelectorAll("[data-fig]")) {
      if (mark(figure) && stood.get(figure.dataset.fig) !== figure.textContent) fresh(figure);
    }
  }
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

/** Put what the figure was before the present edit beside it, when it was something else. @param {HTMLElement} figure */
function mark(figure) {
  const was = before?.get(figure.dataset.fig);
  const changed = was !== undefined && was !== figure.textContent;
  if (changed) figure.dataset.was = was;
  else delete figure.dataset.was;
  return changed;
}

/** Let a figure stand out for a moment. @param {HTMLElement} figure */
function fresh(figure) {
  figure.classList.add("em-new");
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
