/**
 * Puts Python's HTML and texts in their places, and marks the figures that changed. No figure is made here.
 */

/** @type {Map<string, {html: string, parts?: string[]}>} what each region holds, as it came and, once needed, taken apart */
const held = new Map();

/** @type {Map<string, string> | null} figures as they stood before the present edit, by key */
let before = null;

/** @type {Map<string, HTMLElement[]>} the elements that show a region or a text; they stand in the page from the start */
const places = new Map();

/** @param {"region" | "text"} kind @param {string} name @returns {HTMLElement[]} */
function placesOf(kind, name) {
  const key = `${kind} ${name}`;
  if (!places.has(key)) places.set(key, [...document.querySelectorAll(`[data-${kind}="${CSS.escape(name)}"]`)]);
  return places.get(key);
}

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

/** @type {WeakMap<HTMLElement, HTMLElement[]>} the figures of a region in the order of its HTML, until it is replaced */
const figuresOf = new WeakMap();

/** @param {HTMLElement} region @returns {HTMLElement[]} */
function figuresIn(region) {
  let figures = figuresOf.get(region);
  if (!figures) {
    figures = [...region.querySelectorAll(".em-fig")];
    figuresOf.set(region, figures);
  }
  return figures;
}

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
  const was = held.get(name);
  if (was?.html === html) {
    for (const region of placesOf("region", name)) settle(region);
    return;
  }
  const now = parts(html);
  held.set(name, { html, parts: now });
  const earlier = was && (was.parts ?? parts(was.html));
  const same = earlier !== undefined && alike(earlier, now);
  for (const region of placesOf("region", name)) {
    if (same) write(region, earlier, now);
    else replace(region, html);
  }
}

/** What the page held from the start, made by the same core from the same inputs. @param {string} name @param {string} html */
export function adopt(name, html) {
  held.set(name, { html });
}

/** @param {HTMLElement} region @param {string[]} was @param {string[]} now */
function write(region, was, now) {
  settle(region);
  const figures = figuresIn(region);
  for (let index = 2; index < now.length; index += 3) {
    if (was[index] === now[index]) continue;
    const figure = figures[(index - 2) / 3];
    put(figure, was[index], now[index]);
    if (mark(figure)) fresh(figure);
  }
}

/** Write a figure; where its unit stays, its number alone. @param {HTMLElement} figure @param {string} was @param {string} now */
function put(figure, was, now) {
  const [number, unit] = split(now);
  const text = figure.firstChild;
  if (text instanceof Text && number !== "" && !number.includes("&") && split(was)[1] === unit) text.data = number;
  else figure.innerHTML = now;
}

/** A figure's text and the element behind it. @param {string} html @returns {[string, string]} */
function split(html) {
  const at = html.indexOf("<");
  return at < 0 ? [html, ""] : [html.slice(0, at), html.slice(at)];
}

/** Figures that were marked against an earlier edit. @param {HTMLElement} region */
function settle(region) {
  for (const figure of region.querySelectorAll("[data-was]")) mark(figure);
}

/** @param {HTMLElement} region @param {string} html */
function replace(region, html) {
  const open = [...region.querySelectorAll("details[open][id]")].map((element) => element.id);
  const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
  const stood = new Map([...region.querySelectorAll("[data-fig]")].map((element) => [element.dataset.fig, element.textContent]));
  region.innerHTML = html;
  figuresOf.delete(region);
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

/** @type {Map<string, string>} what each text was last set to */
const said = new Map();

/**
 * Set every element that shows the text `name`.
 * @param {string} name
 * @param {string} text
 */
export function fill(name, text) {
  if (said.get(name) === text) return;
  said.set(name, text);
  for (const element of placesOf("text", name)) {
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Set the texts of elements that were not in the page when their texts came. @param {Element} part */
export function fillIn(part) {
  for (const element of part.querySelectorAll("[data-text]")) {
    const name = element.dataset.text;
    places.delete(`text ${name}`);
    const text = said.get(name);
    if (text !== undefined) element.textContent = text;
  }
}
