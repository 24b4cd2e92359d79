/** The worker: strings in, strings out. Python answers one request at a time. */

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

async function start(parts) {
  try {
    [python] = await Promise.all([boot(parts), holdLock()]);
    postMessage({ type: "ready", lock });
  } catch (error) {
    postMessage({ type: "failed", detail: String(error?.message ?? error).trim().split("\n").at(-1) });
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
  if (data.type === "boot") void start(data);
  else if (data.record) void record(data);
  else answer(data);
};
