/** The worker: strings in, strings out. Python answers one request at a time. */

import { downloadPython } from "./download.js";
import { boot } from "./worker-boot.js";

const lock = `enginemem-${crypto.randomUUID()}`;
/** @type {import("./worker-boot.js").Python | null} */
let python = null;

/** Hold a lock for as long as this worker lives, so that the page notices its end. */
function holdLock() {
  return new Promise((resolve) => {
    if (!navigator.locks) resolve(undefined);
    else navigator.locks.request(lock, () => new Promise(() => resolve(undefined))).catch(resolve);
  });
}

/** Tell how far the download is, at most ten times a second. */
function reporter() {
  let last = 0;
  return (loaded, total) => {
    const now = performance.now();
    if (now - last < 100 && loaded < total) return;
    last = now;
    postMessage({ type: "state", state: "download", loaded, total });
  };
}

async function start() {
  try {
    const parts = await downloadPython(reporter(), self.enginemem);
    postMessage({ type: "state", state: "start" });
    [python] = await Promise.all([boot(parts), holdLock()]);
    postMessage({ type: "state", state: "ready", lock });
  } catch (error) {
    const detail = String(error?.message ?? error).trim().split("\n").at(-1);
    postMessage({ type: "state", state: "failed", kind: error?.kind ?? "start", detail });
  }
}

async function record({ id, text }) {
  try {
    await python.prepareRecord();
  } catch (error) {
    const refusal = { id, ok: false, error: { kind: "download", message: error.message } };
    postMessage({ type: "answer", id, text: JSON.stringify(refusal) });
    return;
  }
  answer({ id, text });
}

function answer({ id, text }) {
  try {
    const found = python.answer(text);
    if (typeof found === "string") postMessage({ type: "answer", id, text: found });
    else found.then((late) => postMessage({ type: "answer", id, text: late }), crash);
  } catch (error) {
    crash(error);
  }
}

/** `handle` never raises: what arrives here is the interpreter's own end. */
function crash(error) {
  postMessage({ type: "crash", detail: String(error?.message ?? error) });
}

self.onmessage = ({ data }) => {
  if (data.record) void record(data);
  else answer(data);
};
void start();
