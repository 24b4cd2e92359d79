/** The calculator: edits go to Python as texts, its answers go into the page, the address follows. */

import { createEngine, keepOffline } from "./client.js";
import { copyText, flash, saveText, watchCopyButtons } from "./copy.js";
import { createForm } from "./form.js";
import { createLoader } from "./loader.js";
import { createModelConfig } from "./model-config.js";
import { adopt, fill, forgetFigures, rememberFigures, swap } from "./regions.js";

const DETAILS_DELAY = 25;
const ANNOUNCE_DELAY = 900;
const page = document.documentElement;
const app = document.getElementById("em-app");
const problem = document.getElementById("em-problem");
const fields = document.getElementById("em-form");

/** @type {ReturnType<typeof createEngine> | null} started by the first question */
let started = null;
const loader = createLoader(document.getElementById("em-loader"), { onRetry: retry });
const form = createForm(fields, { onEdit: edited });
const modelConfig = createModelConfig({ form: fields, onChange: () => edited("config") });

/**
 * What the page shows or is about to show: the form's inputs with the reader's own model, or a link.
 * @type {{inputs: Record<string, string>, config?: string, quant_config?: string} | {link: string}}
 */
let wanted = { inputs: {} };
/** The field that was edited last, so that one visit to it is one step back. */
let editedKey = "";
/** Whether this visit to it has its entry in the history already. */
let moved = false;
/** What the figures on the page belong to. @type {typeof wanted | null} */
let shown = null;
let reference = "";
let shownLink = "";
let detailsTimer = 0;
/** The address that the browser does not show yet. */
let nextAddress = "";
let announceTimer = 0;

function engine() {
  started ??= createEngine({ onState });
  return started;
}

/** A link that cannot be computed must not stay announced as being computed. @param {{state: string}} status */
function onState(status) {
  loader.show(status);
  if (status.state === "ready") keepOffline();
  if (status.state !== "failed") return;
  if (page.dataset.em === "pending") page.dataset.em = "failed";
  else if (wanted !== shown && Object.keys(wanted.inputs ?? {}).length) app.setAttribute("data-stale", "");
}

function retry() {
  engine().restart();
  if (page.dataset.em) open();
  else void ask("edit");
}

/**
 * Ask for figures, show them, and let the details follow.
 * @param {"edit" | "open"} way an edit marks what changed and moves the address; opening does neither
 */
async function ask(way) {
  clearTimeout(detailsTimer);
  const request = wanted;
  const question = figuresOf(request);
  if (engine().state.state === "failed") app.setAttribute("data-stale", "");
  const answer = await engine().request(question);
  if (answer === null || request !== wanted || question.reference !== reference) return;
  fields.inert = false;
  if (!answer.ok) {
    refuse(answer, way);
    return;
  }
  problem.hidden = true;
  app.removeAttribute("data-stale");
  show(answer);
  if (way === "open") form.set(answer.inputs);
  else form.accept(answer.inputs);
  modelConfig.answered(answer);
  shown = request;
  delete page.dataset.em;
  shownLink = answer.link + modelConfig.fragment();
  const isPlain = Object.keys(answer.inputs).length === 0 && modelConfig.fragment() === "";
  if (way === "edit") move(isPlain ? location.pathname : shownLink);
  announce(answer.texts.announce);
  lookAhead();
  // An untouched page has them from the build.
  if (!untouched) detailsTimer = setTimeout(() => details(request), DETAILS_DELAY);
}

/** The question for the figures of what is wanted. @param {typeof wanted} what */
const figuresOf = (what) => ({ kind: "plan", part: "figures", reference, ...what });

/** Have the answers to the next key in the field that has the focus. */
function lookAhead() {
  const key = document.activeElement?.closest("#em-form [data-key]")?.dataset.key;
  if (!key || page.dataset.em || wanted !== shown || modelConfig.request().config) return;
  for (const [next, inputs] of form.nextInputs(key)) started.expect(figuresOf({ inputs }), next);
}

/** Whether the page still holds, untouched, what the core made of the defaults when the site was built. */
let untouched = !page.dataset.em;

/** @param {{regions: Record<string, string>, texts: Record<string, string>, inputs: object, config?: object}} answer */
function show({ regions, texts, inputs, config }) {
  untouched &&= Object.keys(inputs).length === 0 && reference === "" && !config;
  for (const [name, html] of Object.entries(regions)) (untouched ? adopt : swap)(name, html);
  if (!untouched) for (const [name, text] of Object.entries(texts)) fill(name, text);
}

/**
 * Ledgers and launch commands, then the pictures; a newer edit stops them between any two.
 * @param {typeof wanted} request
 */
async function details(request) {
  for (const part of ["details", "charts"]) {
    const answer = await engine().request({ kind: "plan", part, ...request });
    if (answer === null || !answer.ok) return;
    for (const [name, html] of Object.entries(answer.regions)) {
      if (request !== wanted) return;
      show({ ...answer, regions: { [name]: html } });
      await rest();
    }
  }
  if (request === wanted) delete page.dataset.emDetails;
}

/** Let the browser take keys and paint. */
const rest = () => new Promise((resolve) => setTimeout(resolve));

/** Bad inputs: beside their fields while the last good result stays; a bad link in one message. */
function refuse(answer, way) {
  if (!answer.errors) {
    say("The page could not compute this.", [answer.error?.message ?? "no answer"]);
    return;
  }
  if (way === "edit") {
    app.setAttribute("data-stale", "");
    modelConfig.answered(answer);
    const elsewhere = modelConfig.otherErrors(form.showErrors(answer.errors));
    if (elsewhere.length) say("Not understood", elsewhere.map((error) => error.message));
    else problem.hidden = true;
    return;
  }
  // What stands on the page stays: the last result, at first that of the defaults.
  const standing = shown ?? { inputs: {} };
  wanted = standing;
  delete page.dataset.em;
  delete page.dataset.emDetails;
  detailsTimer = setTimeout(() => details(standing), DETAILS_DELAY);
  say("This link cannot be opened as it is.", answer.errors.map((error) => `${error.field}: ${error.message}`), true);
}

/** @param {string} heading @param {string[]} lines @param {boolean} offerDefaults */
function say(heading, lines, offerDefaults = false) {
  const title = document.createElement("p");
  title.textContent = heading;
  const list = document.createElement("ul");
  for (const line of lines) list.append(Object.assign(document.createElement("li"), { textContent: line }));
  problem.replaceChildren(title, list);
  if (offerDefaults) {
    const below = Object.assign(document.createElement("p"), { className: "em-small" });
    below.textContent = "The inputs and figures below are not the link’s.";
    const button = Object.assign(document.createElement("button"), { type: "button", className: "em-button" });
    button.textContent = "Start from the defaults";
    button.addEventListener("click", () => {
      history.pushState(null, "", location.pathname);
      open();
    });
    problem.append(below, button);
  }
  problem.hidden = false;
}

/**
 * One visit to a field is one entry in the history; its further edits replace that entry. The browser takes longer to
 * change its address than the page to show the figures, so the figures go first.
 * @param {string} address
 */
function move(address) {
  if (nextAddress === "") requestAnimationFrame(() => setTimeout(arrive));
  nextAddress = address;
}

function arrive() {
  const address = nextAddress;
  nextAddress = "";
  if (address === "" || new URL(address, location.href).href === location.href) return;
  if (moved) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  moved = true;
}

/** @param {string} text */
function announce(text) {
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => {
    document.getElementById("em-announce").textContent = text;
  }, ANNOUNCE_DELAY);
}

/** What changes from now on is marked against the figures as they stand, and is one step back. */
function visit() {
  arrive();
  rememberFigures();
  moved = false;
}

/** @param {string} key */
function edited(key) {
  if (key !== editedKey) visit();
  editedKey = key;
  wanted = { inputs: form.inputs(), ...modelConfig.request() };
  void ask("edit");
}

/** Show what the address asks for. */
function open() {
  nextAddress = "";
  forgetFigures();
  editedKey = "";
  const hash = modelConfig.opened(location.hash);
  if (location.search.length > 1 || hash) {
    page.dataset.em = "pending";
    page.dataset.emDetails = "pending";
    wanted = { link: location.search + hash };
    // Until the link's inputs stand in the form there is nothing to edit.
    fields.inert = engine().state.state !== "ready";
  } else {
    if (page.dataset.em) page.dataset.em = "pending";
    modelConfig.clear();
    wanted = { inputs: {} };
  }
  void ask("open");
}

fields.addEventListener("focusin", (event) => {
  const row = event.target.closest("[data-key]");
  if (!row) return;
  visit();
  editedKey = row.dataset.key;
  lookAhead();
});
// Where the cursor stands decides what the next digit makes of the field.
document.addEventListener("selectionchange", lookAhead);
window.addEventListener("pagehide", arrive);
document.getElementById("em-reset-all").addEventListener("click", () => {
  visit();
  modelConfig.clear();
  wanted = { inputs: {} };
  form.set({});
  void ask("edit");
});
for (const radio of document.querySelectorAll("[name=em-reference]")) {
  radio.addEventListener("change", () => {
    reference = radio.value;
    void ask("edit");
  });
}
window.addEventListener("popstate", open);

const FILES = {
  json: { name: "enginemem.json", type: "application/json" },
  csv: { name: "enginemem.csv", type: "text/csv" },
};

app.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-action]");
  if (!button) return;
  const action = button.dataset.action;
  if (action === "link") {
    const address = new URL(shownLink || "?v=1", location.origin + location.pathname).href;
    flash(button, (await copyText(address)) ? "Copied" : "Not copied");
    return;
  }
  const answer = await engine().request({ kind: "plan", part: "downloads", ...wanted });
  if (!answer?.ok) {
    flash(button, "Not ready");
  } else if (action === "markdown") {
    flash(button, (await copyText(answer.texts.markdown)) ? "Copied" : "Not copied");
  } else {
    saveText(FILES[action].name, FILES[action].type, answer.texts[action]);
    flash(button, "Saved");
  }
});

watchCopyButtons();
if (page.dataset.em) {
  open();
} else if (Object.keys(form.inputs()).length) {
  // Somebody edited before this script was there.
  wanted = { inputs: form.inputs() };
  void ask("edit");
} else {
  // The figures are there already: let the page finish first, unless somebody edits before that.
  const idle = window.requestIdleCallback ?? ((run) => setTimeout(run, 200));
  const begin = () => idle(() => { if (started === null) void ask("open"); });
  if (document.readyState === "complete") begin();
  else window.addEventListener("load", begin, { once: true });
}
