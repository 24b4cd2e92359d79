/** Shows how far Python is: nothing while it is quick, bytes when it takes long, an explanation when it fails. */

const QUIET = 2500;
const MB = 1e6;

/** What to tell of each failure: what happened, and what still works or helps. */
const FAILURES = {
  "old-browser": (detail) =>
    `This browser lacks what live figures need (${detail}). The figures on the page are those of the default inputs. A browser of 2023 or newer computes your own.`,
  offline: () => "There is no connection, and this visit has not yet brought everything along. Connect and try again.",
  network: (detail) => `The connection broke while ${detail} was loading.`,
  http: (detail) => `A file of this site could not be loaded (${detail}).`,
  damaged: (detail) => `A file of this site arrived damaged (${detail}).`,
  start: (detail) => `Python could not start here (${detail}).`,
  crash: (detail) => `Python stopped twice (${detail}). Your inputs are kept.`,
};
const NO_RETRY = new Set(["old-browser"]);

/** @param {number} bytes */
const megabytes = (bytes) => (bytes / MB).toFixed(1);

/** The line for a state, null when there is nothing to say. @param {import("./client.js").State} state */
export function words({ state, loaded = 0, total = 0, kind = "", detail = "" }) {
  if (state === "download") return total ? `Loading Python: ${megabytes(loaded)} of ${megabytes(total)} MB` : "Loading Python";
  if (state === "start") return "Starting Python";
  if (state === "failed") return (FAILURES[kind] ?? FAILURES.start)(detail);
  return null;
}

/**
 * @param {HTMLElement} element empty; gets the line, a progress bar and a button
 * @param {{onRetry: () => void}} options
 * @returns {{show: (state: import("./client.js").State) => void}}
 */
export function createLoader(element, { onRetry }) {
  const line = Object.assign(document.createElement("p"), { className: "em-loader-text" });
  const bar = Object.assign(document.createElement("progress"), { className: "em-loader-bar", max: 1, hidden: true });
  bar.setAttribute("aria-label", "Loading Python");
  const button = Object.assign(document.createElement("button"), {
    type: "button", className: "em-button", textContent: "Try again", hidden: true,
  });
  button.addEventListener("click", onRetry);
  line.setAttribute("role", "status");
  element.append(line, bar, button);
  element.hidden = true;
  let since = 0;
  let timer = 0;
  /** @type {import("./client.js").State} */
  let current = { state: "idle" };

  function draw() {
    const failed = current.state === "failed";
    const text = words(current);
    const late = since > 0 && performance.now() - since >= QUIET;
    element.hidden = text === null || !(failed || late);
    if (element.hidden) return;
    // The status is said once; the numbers that run on are for the eye.
    line.setAttribute("role", failed ? "alert" : "status");
    line.setAttribute("aria-live", failed ? "assertive" : "off");
    if (line.textContent !== text) line.textContent = text;
    bar.hidden = failed;
    if (current.state === "download" && current.total) bar.value = current.loaded / current.total;
    else bar.removeAttribute("value");
    button.hidden = !failed || NO_RETRY.has(current.kind);
  }

  function show(state) {
    const busy = state.state === "download" || state.state === "start";
    if (!busy) since = 0;
    else if (!since) {
      since = performance.now();
      clearTimeout(timer);
      timer = setTimeout(draw, QUIET);
    }
    current = state;
    element.dataset.state = state.state;
    draw();
  }

  return { show };
}
