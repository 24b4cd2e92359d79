/**
 * The form: which texts the reader set, stepping by arrow keys, resets, and the messages beside the fields.
 * What a text means is Python's to say; this module only carries it.
 */

import { fillIn } from "./regions.js";

/** How long a field waits for the figures of its own step. */
const FIELD_WAITS_MS = 50;

/** Texts of more characters are not what a key makes of a number. */
const LONGEST_AHEAD = 12;

/**
 * @param {HTMLFormElement} form
 * @param {{onEdit: (key: string) => void}} hooks
 */
export function createForm(form, { onEdit }) {
  /** @type {Map<string, {row: HTMLElement, control: HTMLInputElement | HTMLSelectElement, place: HTMLElement}>} */
  const fields = new Map();
  const counters = [...form.querySelectorAll("[data-count]")];
  const resetAll = form.querySelector("#em-reset-all");
  /** @type {Record<string, string>} canonical texts of the last good answer */
  let canonical = {};
  /** @type {Map<string, string>} what the fields held when that answer came */
  const answered = new Map();

  /** A step whose text the field does not show yet. @type {{key: string, text: string} | null} */
  let step = null;
  let stepTimer = 0;

  /** Take up the fields of a part of the form. @param {Element} part */
  function collect(part) {
    for (const row of part.querySelectorAll("[data-key]")) {
      const control = row.querySelector("input, select");
      fields.set(row.dataset.key, { row, control, place: row.querySelector(".em-error") });
      // What was typed before this script was there is not answered yet.
      answered.set(row.dataset.key, control.dataset.default);
    }
  }

  /**
   * An engine's fold holds its fields as text until it is opened, or until one of them differs from its default: the
   * browser looks through every field that a page has, also those that are folded away.
   * @param {Element | null} fold
   */
  function unfold(fold) {
    const text = fold?.querySelector(":scope > noscript");
    if (!text) return;
    const holder = document.createElement("template");
    holder.innerHTML = text.textContent;
    text.replaceWith(holder.content);
    collect(fold);
    fillIn(fold);
  }

  /** Have the fields of these keys. @param {string[]} keys */
  function need(keys) {
    for (const key of keys) if (!fields.has(key)) unfold(document.getElementById(`em-knobs-${key.split(".")[0]}`));
  }

  /** What a field holds, or is about to hold. @param {string} key */
  const textOf = (key) => (step?.key === key ? step.text : fields.get(key).control.value);

  /**
   * What differs from the defaults, as typed.
   * @param {string} [other] a field that is taken at another text, `itsText`
   * @param {string} [itsText]
   * @returns {Record<string, string>}
   */
  function inputs(other, itsText) {
    const given = {};
    for (const [key, { control }] of fields) {
      const text = (key === other ? itsText : textOf(key)).trim();
      if (text !== "" && text !== control.dataset.default) given[key] = text;
    }
    return given;
  }

  /** @param {string} key @param {string} text */
  function setText(key, text) {
    if (step?.key === key) step = null;
    const { control } = fields.get(key);
    if (control.value !== text) control.value = text;
  }

  /** The field shows its step together with the figures, in one frame; or alone, when those are late. */
  function showStep() {
    clearTimeout(stepTimer);
    if (step) setText(step.key, step.text);
  }

  /** Write every field: the given texts, the defaults elsewhere. @param {Record<string, string>} texts */
  function set(texts) {
    need(Object.keys(texts));
    for (const [key, { control }] of fields) setText(key, texts[key] ?? control.dataset.default);
    accept(texts);
    for (const fold of form.querySelectorAll("details.em-knobs")) {
      if (fold.querySelector("[data-changed]")) fold.open = true;
    }
  }

  /** A good answer's inputs: mark what differs from the defaults, take the messages away. @param {Record<string, string>} texts */
  function accept(texts) {
    need(Object.keys(texts));
    canonical = texts;
    if (step) requestAnimationFrame(showStep);
    for (const [key, { row, control }] of fields) {
      row.toggleAttribute("data-changed", key in texts);
      // The field that is being edited keeps what was typed until it is left.
      if (control !== document.activeElement) setText(key, texts[key] ?? control.dataset.default);
      answered.set(key, textOf(key));
    }
    for (const counter of counters) {
      const count = Object.keys(texts).filter((key) => key.startsWith(`${counter.dataset.count}.`)).length;
      const text = count ? `${count} set` : "";
      if (counter.textContent !== text) counter.textContent = text;
    }
    resetAll.disabled = Object.keys(texts).length === 0;
    showErrors([]);
  }

  /**
   * Show each message beside its field.
   * @param {{field: string, message: string}[]} errors
   * @returns {{field: string, message: string}[]} those whose field the form does not have
   */
  function showErrors(errors) {
    need(errors.map((error) => error.field));
    const known = new Map(errors.filter((error) => fields.has(error.field)).map((error) => [error.field, error.message]));
    for (const [key, { row, control, place }] of fields) {
      const text = known.get(key) ?? "";
      row.toggleAttribute("data-invalid", text !== "");
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
      if (place.textContent !== text) place.textContent = text;
      // A message in a closed fold would leave the reader with old figures and no reason.
      const fold = text && row.closest("details.em-knobs");
      if (fold) fold.open = true;
    }
    if (errors.length) resetAll.disabled = false;
    return errors.filter((error) => !fields.has(error.field));
  }

  /** The next text in the field's own list of steps, or null. @param {string} key @param {1 | -1} direction */
  function nextStep(key, direction) {
    const { row, control } = fields.get(key);
    const steps = control.dataset.steps.split(",");
    const typed = textOf(key).trim();
    // What was typed last counts, also while its answer is on the way.
    const text = canonical[key] !== undefined && answered.get(key) === textOf(key) ? canonical[key] : typed;
    const shown = text === "auto" ? row.querySelector(".em-auto").textContent.replaceAll(",", "") : text;
    const now = Number.parseFloat(shown);
    if (Number.isNaN(now)) return null;
    const found = direction > 0
      ? steps.find((step) => Number.parseFloat(step) > now)
      : steps.findLast((step) => Number.parseFloat(step) < now);
    return found ?? null;
  }

  /** What a choice may be after the next key, by key. @param {HTMLSelectElement} control */
  function nextChoices({ options, selectedIndex }) {
    const places = { up: selectedIndex - 1, down: selectedIndex + 1, first: 0, last: options.length - 1 };
    return new Map(Object.entries(places).flatMap(([name, place]) =>
      options[place] && place !== selectedIndex ? [[name, options[place].value]] : []));
  }

  /** What a field may hold after the next key, by key: a step up or down, a character more or less. @param {string} key */
  function nextTexts(key) {
    const { control } = fields.get(key);
    if (control.localName === "select") return nextChoices(control);
    const found = new Map();
    for (const [name, direction] of [["up", 1], ["down", -1]]) {
      const text = control.dataset.steps ? nextStep(key, direction) : null;
      if (text !== null) found.set(name, text);
    }
    const { selectionStart: start, selectionEnd: end } = control;
    const text = textOf(key);
    // A step that is not shown yet is written over the selection.
    if (text !== control.value) return found;
    const [head, tail] = [text.slice(0, start), text.slice(end)];
    if (head.length + tail.length < LONGEST_AHEAD) for (const one of control.dataset.typed) found.set(one, head + one + tail);
    found.set("erase", (start === end ? head.slice(0, -1) : head) + tail);
    return found;
  }

  /**
   * The inputs that the next key in a field may lead to, by that key.
   * @param {string} key @returns {[string, Record<string, string>][]}
   */
  const nextInputs = (key) => Array.from(nextTexts(key), ([name, text]) => [name, inputs(key, text)]);

  /** @param {EventTarget} target */
  const keyOf = (target) => target.closest?.("[data-key]")?.dataset.key;

  collect(form);
  // Opened before this script was there.
  for (const fold of form.querySelectorAll("details.em-knobs[open]")) unfold(fold);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const key = keyOf(event.target);
    if (!key) return;
    // What was typed or chosen replaces a step of the same field.
    if (step?.key === key) step = null;
    onEdit(key);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    if (!event.target.dataset?.steps || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const key = keyOf(event.target);
    const text = nextStep(key, event.key === "ArrowUp" ? 1 : -1);
    if (text === null) return;
    // A frame for the field alone would come between Python's answer and the figures.
    step = { key, text };
    clearTimeout(stepTimer);
    stepTimer = setTimeout(showStep, FIELD_WAITS_MS);
    onEdit(key);
  });
  form.addEventListener("focusout", (event) => {
    const key = keyOf(event.target);
    if (!key || event.target !== fields.get(key).control) return;
    const { row, control } = fields.get(key);
    showStep();
    // What is not answered yet, or was refused, stays as it was typed.
    if (row.hasAttribute("data-invalid") || answered.get(key) !== control.value) return;
    setText(key, canonical[key] ?? control.dataset.default);
  });
  // Before the browser opens the fold, so that it opens full; and however else it is opened.
  form.addEventListener("click", (event) => unfold(event.target.closest("details.em-knobs > summary")?.parentElement ?? null));
  form.addEventListener("toggle", (event) => unfold(event.target), true);
  form.addEventListener("click", (event) => {
    const key = event.target.closest("[data-reset]")?.dataset.reset;
    if (!key) return;
    const { control } = fields.get(key);
    setText(key, control.dataset.default);
    control.focus();
    onEdit(key);
  });

  return { inputs, nextInputs, set, accept, showErrors };
}
