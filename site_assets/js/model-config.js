/**
 * The model's part of the form: a search that narrows the presets, and a configuration of the reader's own.
 * What a configuration says is Python's to tell; this module carries texts to it and puts its words in their places.
 */

import { swap } from "./regions.js";

const TYPING = 350;
const PREFIX = "#config=";

/** A size as a search names it, in parameters: `<10b`, `>=70b`. */
const SIZE = /^([<>]=?)(\d+(?:\.\d+)?)b?$/;

/** What a search looks at: name, id, family and hub ids. @param {HTMLOptionElement} option */
const wordsOf = (option) =>
  `${option.textContent} ${option.value} ${option.parentElement.label} ${option.dataset.hub}`.toLowerCase();

/** @param {string} word @returns {(option: HTMLOptionElement) => boolean} whether an option has the word or the size */
function matcher(word) {
  const size = SIZE.exec(word);
  if (!size) return (option) => wordsOf(option).includes(word);
  const bound = Number(size[2]) * 1e9;
  const below = size[1].startsWith("<");
  return (option) => (below ? Number(option.dataset.size) <= bound : Number(option.dataset.size) >= bound);
}

/**
 * Narrow a select's options by what is typed. All options stay in the select, so that any value can be set.
 * @param {HTMLInputElement} input @param {HTMLSelectElement} select @param {HTMLElement} said
 */
function createSearch(input, select, said) {
  const options = [...select.options];

  /** @returns {HTMLOptionElement[]} */
  function narrow() {
    const tests = input.value.toLowerCase().split(/\s+/).filter(Boolean).map(matcher);
    const found = options.filter((option) => tests.every((test) => test(option)));
    for (const option of options) option.hidden = option.disabled = !option.selected && !found.includes(option);
    for (const group of select.querySelectorAll("optgroup")) {
      group.hidden = [...group.children].every((option) => option.hidden);
    }
    said.textContent = tests.length ? `${found.length} of ${options.length}` : "";
    return found;
  }

  input.addEventListener("input", narrow);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && input.value) {
      input.value = "";
      narrow();
    } else if (event.key === "Enter") {
      const [first] = narrow();
      if (!first || !input.value.trim()) return;
      select.value = first.value;
      select.dispatchEvent(new Event("input", { bubbles: true }));
      narrow();
    } else if (event.key === "ArrowDown") {
      select.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  input.closest("[hidden]")?.removeAttribute("hidden");
}

/**
 * @typedef {{ok: boolean, verdict: string, fragment: string | null, note: string, files?: Record<string, string>}} Config
 * @typedef {{field: string, message: string}} Problem
 */

/**
 * @param {{form: HTMLFormElement, onChange: () => void}} options `onChange`: the reader brought another configuration,
 *   or went back to the preset; ask for its figures.
 */
export function createModelConfig({ form, onChange }) {
  const fold = form.querySelector("#em-config");
  /** The boxes, until the fold opens for the first time. */
  const folded = document.importNode(fold.querySelector("template").content, true);
  const part = (name) => form.querySelector(`#em-config${name}`) ?? folded.querySelector(`#em-config${name}`);
  const boxes = { config: part("-text"), quant_config: part("-quant") };
  const [file, said, note, back] = ["-file", "-said", "-note", "-back"].map(part);
  const row = form.querySelector('[data-key="model"]');
  /** What goes behind the address; empty for a preset, and where a link cannot carry the configuration. */
  let carried = "";
  let timer = 0;

  /** What a request about a plan says of the reader's own model. @returns {{config?: string, quant_config?: string}} */
  function request() {
    const given = {};
    for (const [name, box] of Object.entries(boxes)) {
      if (box.value.trim() !== "") given[name] = box.value;
    }
    return given;
  }

  /** @param {string} verdict @param {string} words @param {boolean} own */
  function draw(verdict, words, own) {
    swap("config", verdict);
    note.textContent = words;
    back.hidden = !own;
    row.toggleAttribute("data-replaced", own);
  }

  /** The preset's figures are wanted again: forget the configuration. */
  function clear() {
    clearTimeout(timer);
    for (const box of Object.values(boxes)) box.value = "";
    file.value = "";
    said.textContent = "";
    carried = "";
    draw("", "", false);
  }

  /**
   * An answer about figures: show what it says of the configuration.
   * @param {{ok: boolean, config?: Config}} answer
   */
  function answered({ ok, config }) {
    if (!config) {
      if (ok && Object.keys(request()).length === 0) clear();
      return;
    }
    if (ok) carried = config.fragment ? `#${config.fragment}` : "";
    for (const [name, text] of Object.entries(config.files ?? {})) boxes[name].value = text;
    if (config.verdict) draw(config.verdict, config.note, true);
  }

  /** What a link adds to its query: the address's own fragment when it carries a configuration. @param {string} hash */
  function opened(hash) {
    if (hash.startsWith(PREFIX)) return hash;
    // An anchor in the page is no other model.
    return hash === "" ? "" : carried;
  }

  /** The errors that are not about the configuration, which shows its own. @param {Problem[]} errors */
  function otherErrors(errors) {
    return errors.filter((error) => !/^(config|hf_quant_config)(\.|\[|$)/.test(error.field));
  }

  function changed() {
    clearTimeout(timer);
    said.textContent = "";
    const long = Object.values(boxes).some((box) => box.value.length > Number(box.dataset.most));
    if (long) said.textContent = said.dataset.long;
    else if (Object.keys(request()).length === 0) leave();
    else onChange();
  }

  function leave() {
    clear();
    onChange();
  }

  /** @param {FileList} files the one whose name says so is the quantisation's */
  async function take(files) {
    const given = [...files];
    fold.open = true;
    if (given.some((one) => one.size > 4 * Number(boxes.config.dataset.most))) {
      said.textContent = said.dataset.long;
      return;
    }
    try {
      for (const one of given) {
        const box = /quant/i.test(one.name) ? boxes.quant_config : boxes.config;
        box.value = await one.text();
      }
    } catch {
      said.textContent = said.dataset.unreadable;
      return;
    }
    changed();
  }

  for (const box of Object.values(boxes)) {
    box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(changed, TYPING);
    });
  }
  // Before the browser opens the fold, so that it opens full; and however else it is opened.
  for (const event of ["click", "toggle"]) fold.addEventListener(event, () => fold.append(folded));
  file.addEventListener("change", () => take(file.files));
  for (const event of ["dragenter", "dragover"]) {
    fold.addEventListener(event, (drag) => {
      if (drag.dataTransfer?.types.includes("Files")) drag.preventDefault();
    });
  }
  fold.addEventListener("drop", (drop) => {
    if (!drop.dataTransfer?.files.length) return;
    drop.preventDefault();
    void take(drop.dataTransfer.files);
  });
  back.addEventListener("click", () => {
    leave();
    row.querySelector("select").focus();
  });
  // Who chooses a preset wants the preset. This runs before the form hears of the choice.
  row.querySelector("select").addEventListener("input", () => {
    if (Object.keys(request()).length) clear();
  });
  createSearch(form.querySelector("#em-model-find"), row.querySelector("select"), form.querySelector("#em-model-find-said"));
  fold.hidden = false;

  return { request, answered, opened, otherErrors, clear, fragment: () => carried };
}
