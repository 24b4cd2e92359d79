/** The hardware page: the table's sorting, and "use my GPU" with two totals or a whole record. */

import "./page.js";
import { swap } from "./regions.js";

/** @type {Promise<{request: (request: object) => Promise<any>}> | null} started when somebody asks for something */
let engine = null;

/** @param {HTMLElement} said where the state of the start is told */
function started(said) {
  engine ??= import("./client.js").then(({ createEngine }) =>
    createEngine({
      onState: ({ state }) => {
        if (state === "download" || state === "start") said.textContent = "Starting Python in this page";
        if (state === "failed") said.textContent = "Python did not start: reload the page to try again.";
      },
    }),
  );
  return engine;
}

/**
 * @param {HTMLElement} said
 * @param {object} request
 */
async function asked(said, request) {
  said.textContent = "Checking";
  const answer = await (await started(said)).request(request);
  said.textContent = answer === null ? "No answer" : "";
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
