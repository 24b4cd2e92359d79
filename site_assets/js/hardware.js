/** The hardware page: the table's sorting, and "use my GPU" with two totals or a whole record. */

import "./page.js";
import { words } from "./loader.js";
import { swap } from "./regions.js";

/** @type {Promise<import("./client.js").Engine> | null} started when somebody asks for something */
let engine = null;
/** Where the state of what was asked last is told. @type {HTMLElement | null} */
let said = null;

function started() {
  engine ??= import("./client.js").then(({ createEngine }) =>
    createEngine({
      onState: (state) => {
        const text = words(state);
        if (text !== null) said.textContent = text;
      },
    }),
  );
  return engine;
}

/**
 * @param {HTMLElement} place where to tell how it goes
 * @param {object} request
 * @returns {Promise<any>} null when a newer question took the place of this one, or nobody can answer it
 */
async function asked(place, request) {
  said = place;
  said.textContent = "Checking";
  let python;
  try {
    python = await started();
  } catch {
    place.textContent = "Python did not start: reload the page to try again.";
    return null;
  }
  const answering = python.request(request);
  if (python.state.state === "failed") python.restart();
  const answer = await answering;
  if (answer !== null) place.textContent = "";
  return answer;
}

const totals = document.getElementById("em-totals");
totals.addEventListener("submit", async (event) => {
  event.preventDefault();
  const inputs = {};
  for (const control of totals.elements) {
    if (control.name && control.value.trim() !== "") inputs[control.name] = control.value.trim();
  }
  const answer = await asked(document.getElementById("em-totals-said"), { kind: "plan", part: "link", inputs });
  if (answer === null) return;
  for (const row of totals.querySelectorAll("[data-key]")) {
    const text = answer.ok ? "" : (answer.errors ?? []).find((error) => error.field === row.dataset.key)?.message ?? "";
    row.querySelector(".em-error").textContent = text;
    row.toggleAttribute("data-invalid", text !== "");
  }
  if (answer.ok) location.assign(`../${answer.link}`);
});

const record = document.getElementById("own-record");
document.getElementById("em-record").addEventListener("submit", async (event) => {
  event.preventDefault();
  const answer = await asked(document.getElementById("em-record-said"), { kind: "validate_gpu", record: record.value });
  if (answer?.regions) swap("gpu-record", answer.regions["gpu-record"]);
  else if (answer?.error) document.getElementById("em-record-said").textContent = answer.error.message;
});
document.getElementById("em-example").addEventListener("click", () => {
  record.value = document.getElementById("em-record-example").textContent;
  record.focus();
});

/** A link to a part's sources opens them. */
function openTarget() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  target?.closest("details")?.setAttribute("open", "");
  target?.scrollIntoView();
}
window.addEventListener("hashchange", openTarget);
openTarget();
