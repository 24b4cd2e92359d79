/**
 * The form: which texts the reader set, stepping by arrow keys, resets, and the messages beside the fields.
 * What a text means is Python's to say; this module only carries it.
 */

/**
 * @param {HTMLFormElement} form
 * @param {{onEdit: (key: string, text?: string) => void}} hooks `text`: what the field is about to hold
 */
export function createForm(form, { onEdit }) {
  /** @type {Map<string, {row: HTMLElement, control: HTMLInputElement | HTMLSelectElement}>} */
  const fields = new Map();
  for (const row of form.querySelectorAll("[data-key]")) {
    fields.set(row.dataset.key, { row, control: row.querySelector("input, select") });
  }
  /** @type {Record<string, string>} canonical texts of the last good answer */
  let canonical = {};
  /** @type {Map<string, string>} what the fields held when that answer came */
  const answered = new Map();

  /**
   * What differs from the defaults, as typed.
   * @param {string} [edited] the field whose text is given, instead of what it holds
   * @param {string} [newText]
   * @returns {Record<string, string>}
   */
  function inputs(edited, newText) {
    const given = {};
    for (const [key, { control }] of fields) {
      const text = (key === edited ? (newText ?? control.value) : control.value).trim();
      if (text !== "" && text !== control.dataset.default) given[key] = text;
    }
    return given;
  }

  /** @param {string} key @param {string} text */
  function setText(key, text) {
    const { control } = fields.get(key);
    if (control.value !== text) control.value = text;
  }

  /** Write every field: the given texts, the defaults elsewhere. @param {Record<string, string>} texts */
  function set(texts) {
    for (const [key, { control }] of fields) setText(key, texts[key] ?? control.dataset.default);
    accept(texts);
    for (const fold of form.querySelectorAll("details.em-knobs")) {
      if (fold.querySelector("[data-changed]")) fold.open = true;
    }
  }

  /** A good answer's inputs: mark what differs from the defaults, take the messages away. @param {Record<string, string>} texts */
  function accept(texts) {
    canonical = texts;
    for (const [key, { row, control }] of fields) {
      row.toggleAttribute("data-changed", key in texts);
      // The field that is being edited keeps what was typed until it is left.
      if (control !== document.activeElement) setText(key, texts[key] ?? control.dataset.default);
      answered.set(key, control.value);
    }
    for (const counter of form.querySelectorAll("[data-count]")) {
      const count = Object.keys(texts).filter((key) => key.startsWith(`${counter.dataset.count}.`)).length;
      counter.textContent = count ? `${count} set` : "";
    }
    form.querySelector("#em-reset-all").disabled = Object.keys(texts).length === 0;
    showErrors([]);
  }

  /**
   * Show each message beside its field.
   * @param {{field: string, message: string}[]} errors
   * @returns {{field: string, message: string}[]} those whose field the form does not have
   */
  function showErrors(errors) {
    const known = new Map(errors.filter((error) => fields.has(error.field)).map((error) => [error.field, error.message]));
    for (const [key, { row, control }] of fields) {
      const text = known.get(key) ?? "";
      row.toggleAttribute("data-invalid", text !== "");
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
      const place = row.querySelector(".em-error");
      if (place.textContent !== text) place.textContent = text;
    }
    if (errors.length) form.querySelector("#em-reset-all").disabled = false;
    return errors.filter((error) => !fields.has(error.field));
  }

  /** The next text in the field's own list of steps, or null. @param {string} key @param {1 | -1} direction */
  function nextStep(key, direction) {
    const { row, control } = fields.get(key);
    const steps = control.dataset.steps.split(",");
    const typed = control.value.trim();
    // What was typed last counts, also while its answer is on the way.
    const text = canonical[key] !== undefined && answered.get(key) === control.value ? canonical[key] : typed;
    const shown = text === "auto" ? row.querySelector(".em-auto").textContent.replaceAll(",", "") : text;
    const now = Number.parseFloat(shown);
    if (Number.isNaN(now)) return null;
    const found = direction > 0
      ? steps.find((step) => Number.parseFloat(step) > now)
      : steps.findLast((step) => Number.parseFloat(step) < now);
    return found ?? null;
  }

  /** @param {EventTarget} target */
  const keyOf = (target) => target.closest?.("[data-key]")?.dataset.key;

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const key = keyOf(event.target);
    if (key) onEdit(key);
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    if (!event.target.dataset?.steps || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const key = keyOf(event.target);
    const text = nextStep(key, event.key === "ArrowUp" ? 1 : -1);
    if (text === null) return;
    // Python begins before the browser has laid the field out again.
    onEdit(key, text);
    setText(key, text);
  });
  form.addEventListener("focusout", (event) => {
    const key = keyOf(event.target);
    if (!key || event.target !== fields.get(key).control) return;
    const { row, control } = fields.get(key);
    // What is not answered yet, or was refused, stays as it was typed.
    if (row.hasAttribute("data-invalid") || answered.get(key) !== control.value) return;
    setText(key, canonical[key] ?? control.dataset.default);
  });
  form.addEventListener("click", (event) => {
    const key = event.target.closest("[data-reset]")?.dataset.reset;
    if (!key) return;
    const { control } = fields.get(key);
    setText(key, control.dataset.default);
    control.focus();
    onEdit(key);
  });

  return { inputs, set, accept, showErrors };
}
