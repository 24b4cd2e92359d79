/** The page's side of the worker that runs Python: one request in flight, the newest of each lane next, one restart. */

import { FIRST } from "./download.js";

/**
 * What the page is told. `kind` and `detail` say why, when the state is "failed".
 * @typedef {{state: "idle" | "download" | "start" | "ready" | "failed", loaded?: number, total?: number,
 *   kind?: string, detail?: string}} State
 * @typedef {{id: number, lane: string, text: string, record: boolean, resolve: (answer: object | null) => void,
 *   sent?: number, unwanted?: boolean}} Job `unwanted`: another answer took its place while it was in flight
 */

/** The states that may follow a state. */
const NEXT = {
  idle: ["download", "failed"],
  download: ["download", "start", "failed"],
  start: ["ready", "failed", "download"],
  ready: ["download", "failed"],
  failed: ["download"],
};
/** How long an answer may take before the worker counts as dead, in milliseconds. */
const PATIENCE = { plan: 10_000, record: 90_000 };
const SOON = new Set(["figures"]);
const LAST = new Set(["details", "charts"]);
/** Answers that are kept ahead of their question. */
const MOST_AHEAD = 40;
const AHEAD = "ahead-";
/** Where figures take longer than this, in milliseconds, nothing is computed ahead: it would stand in the way. */
const SLOW = 150;

/** A lane's place in the order of answering. @param {string} lane */
function rank(lane) {
  if (SOON.has(lane)) return 0;
  if (lane.startsWith(AHEAD)) return 3;
  return LAST.has(lane) ? 2 : 1;
}

/** What this browser lacks of what Python needs. */
function lacking() {
  const needed = {
    WebAssembly: typeof WebAssembly === "object" && "compileStreaming" in WebAssembly,
    "WebAssembly exceptions": typeof WebAssembly === "object" && "Tag" in WebAssembly,
    DecompressionStream: typeof DecompressionStream === "function",
    BigInt64Array: typeof BigInt64Array === "function",
    Worker: typeof Worker === "function",
  };
  return Object.keys(needed).filter((name) => !needed[name]);
}

/** When the page's static figures have been painted, or at once when nobody sees the page. */
async function painted() {
  if (document.visibilityState === "hidden") return;
  if (document.readyState === "loading") {
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  }
  // Frames wait for the style sheets, so the next one shows the whole page; the task after it follows the paint.
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))));
}

/**
 * A worker under the page's own policy: one that is made from a blob inherits it, one from an address does not. The
 * blob asks for the large files before it loads the worker's modules.
 * @param {boolean} again pass the browser's cache by: it may have kept a failure
 * @returns {Worker | null} null in a browser that has no module workers
 */
function startWorker(again) {
  const source = `
    const begun = {};
    for (const address of ${JSON.stringify(FIRST)}) {
      begun[address] = fetch(address, { cache: ${again ? '"reload"' : '"default"'} });
      begun[address].catch(() => {});
    }
    self.enginemem = { begun, again: ${again} };
    import(${JSON.stringify(new URL("./worker.js", import.meta.url).href)}).catch((error) => {
      const kind = error instanceof SyntaxError ? "old-browser" : navigator.onLine ? "http" : "offline";
      postMessage({ type: "state", state: "failed", kind, detail: error.message });
    });`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  let asked = false;
  // Only a browser that knows the option reads it.
  const worker = new Worker(address, { name: "enginemem", get type() { asked = true; return "module"; } });
  worker.addEventListener("message", () => URL.revokeObjectURL(address), { once: true });
  if (asked) return worker;
  worker.terminate();
  return null;
}

/** @type {ReturnType<typeof createEngine> | null} an engine that was started before the page asked for one */
let early = null;

/** Start Python now, whatever the page still does; the next createEngine gets this engine. */
export function startEarly() {
  early = createEngine();
  early.start({ now: true });
}

/**
 * @typedef {{request: (asked: object) => Promise<object | null>, expect: (asked: object, lane: string) => void,
 *   restart: () => void, start: (how?: {now?: boolean}) => void, listen: (onState: (state: State) => void) => void, readonly state: State}} Engine
 */

/** @param {{onState?: (state: State) => void}} options @returns {Engine} */
export function createEngine({ onState = () => {} } = {}) {
  if (early) {
    const engine = early;
    early = null;
    engine.listen(onState);
    return engine;
  }
  /** @type {State} */
  let state = { state: "idle" };
  /** @type {Map<string, Job>} */
  const waiting = new Map();
  /** @type {Job | null} */
  let inFlight = null;
  /** @type {Map<string, object>} answers to questions that nobody has asked yet, by question */
  const ahead = new Map();
  /** @type {Set<string>} those that are being answered, or wait to be */
  const expected = new Set();
  /** How long the last three answers with figures took, of which two may have met a busy moment. */
  let took = [0, 0, 0];
  /** @type {Worker | null} */
  let worker = null;
  let timer = 0;
  let lastId = 0;
  let attempt = 0;
  let crashes = 0;
  let refused = false;
  let atOnce = false;

  function move(name, more = {}) {
    if (!NEXT[state.state].includes(name)) return;
    state = { state: name, ...more };
    onState(state);
  }

  function fail(kind, detail) {
    stop();
    move("failed", { kind, detail });
  }

  function stop() {
    clearTimeout(timer);
    attempt += 1;
    worker?.terminate();
    worker = null;
  }

  async function start() {
    const missing = lacking();
    if (missing.length) return fail("old-browser", missing.join(", "));
    const first = attempt === 0;
    const mine = (attempt += 1);
    move("download", { loaded: 0, total: 0 });
    // A page that shows static figures shows them before it loads.
    if (first && !atOnce) await painted();
    if (mine !== attempt) return undefined;
    worker = startWorker(refused);
    if (worker === null) return fail("old-browser", "module workers");
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = (event) => died(event.message || "the worker could not be loaded");
    return undefined;
  }

  /** A message of the worker. */
  function hear(message) {
    if (message.type === "answer") answered(message);
    else if (message.type === "crash") died(message.detail);
    else if (message.state === "failed") {
      refused = true;
      // The worker may hear later than the page that the connection is gone.
      const lost = !navigator.onLine && (message.kind === "http" || message.kind === "network");
      fail(lost ? "offline" : message.kind, message.detail);
    } else {
      move(message.state, { loaded: message.loaded, total: message.total });
      if (message.state !== "ready") return;
      refused = false;
      watch(message.lock);
      keepOffline();
      pump();
    }
  }

  /** The worker holds a lock while it lives: whoever gets it next knows that it is gone. */
  function watch(lock) {
    const mine = attempt;
    navigator.locks?.request(lock, () => {
      if (mine === attempt) died("the worker is gone");
    });
  }

  function died(why) {
    const job = inFlight;
    inFlight = null;
    stop();
    if (job) keepWaiting(job);
    forgetExpected();
    crashes += 1;
    if (crashes > 1) {
      move("failed", { kind: "crash", detail: why });
    } else {
      void start();
    }
  }

  const isSlow = () => Math.min(...took) > SLOW;

  /** Compute nothing ahead that nobody waits for. */
  function forgetExpected() {
    for (const [lane, job] of waiting) {
      if (!lane.startsWith(AHEAD)) continue;
      waiting.delete(lane);
      job.resolve(null);
    }
  }

  /** Ask a job that got no answer again, unless something newer took its place. @param {Job} job */
  function keepWaiting(job) {
    if (job.unwanted || waiting.has(job.lane)) job.resolve(null);
    else waiting.set(job.lane, job);
  }

  function answered({ id, text }) {
    const job = inFlight;
    if (job === null || job.id !== id) return;
    clearTimeout(timer);
    inFlight = null;
    if (!job.lane.startsWith(AHEAD)) crashes = 0;
    // A newer request of its lane is waiting or answered: nobody wants this answer any more.
    const stale = job.unwanted || waiting.has(job.lane);
    if (SOON.has(job.lane) || job.lane.startsWith(AHEAD)) {
      took = [...took.slice(1), performance.now() - job.sent];
      if (isSlow()) forgetExpected();
    }
    pump();
    job.resolve(stale ? null : JSON.parse(text));
  }

  /** Send the next request: figures first, details late, what nobody has asked yet last. */
  function pump() {
    if (inFlight || state.state !== "ready" || waiting.size === 0) return;
    const [lane] = [...waiting.keys()].sort((one, other) => rank(one) - rank(other));
    inFlight = waiting.get(lane);
    waiting.delete(lane);
    inFlight.sent = performance.now();
    const { id, text, record } = inFlight;
    worker.postMessage({ type: "request", id, text, record });
    timer = setTimeout(() => died("no answer came"), record ? PATIENCE.record : PATIENCE.plan);
  }

  /** Ask Python; the answer is null when a newer request of the same lane took its place. */
  function request(asked) {
    const lane = asked.part ?? asked.kind;
    const known = state.state === "ready" && ahead.get(JSON.stringify(asked));
    if (!known) return queue(asked, lane);
    waiting.get(lane)?.resolve(null);
    waiting.delete(lane);
    if (inFlight?.lane === lane) inFlight.unwanted = true;
    return Promise.resolve(known);
  }

  /**
   * Compute what may be asked next, when nothing else waits. The core is pure: the answer stays right.
   * @param {object} asked @param {string} lane a newer expectation of the same lane takes its place
   */
  async function expect(asked, lane) {
    const question = JSON.stringify(asked);
    if (state.state !== "ready" || isSlow() || ahead.has(question) || expected.has(question)) return;
    expected.add(question);
    const answer = await queue(asked, AHEAD + lane);
    expected.delete(question);
    if (answer === null) return;
    ahead.set(question, answer);
    if (ahead.size > MOST_AHEAD) ahead.delete(ahead.keys().next().value);
  }

  /** @param {object} asked @param {string} lane @returns {Promise<object | null>} */
  function queue(asked, lane) {
    const id = (lastId += 1);
    const text = JSON.stringify({ ...asked, id });
    return new Promise((resolve) => {
      waiting.get(lane)?.resolve(null);
      waiting.set(lane, { id, lane, text, record: asked.kind === "validate_gpu", resolve });
      if (state.state === "idle") void start();
      else pump();
    });
  }

  /** After a failure: begin again, with the requests that still wait. */
  function restart() {
    stop();
    crashes = 0;
    if (inFlight) keepWaiting(inFlight);
    inFlight = null;
    void start();
  }

  return {
    request,
    expect,
    restart,
    start({ now = false } = {}) {
      atOnce ||= now;
      if (state.state === "idle") void start();
    },
    listen(listener) {
      onState = listener;
      onState(state);
    },
    get state() {
      return state;
    },
  };
}

/** Let the service worker keep this release, so that the site works offline from the next visit on. */
export function keepOffline() {
  if (!("serviceWorker" in navigator) || navigator.connection?.saveData) return;
  navigator.serviceWorker.register(new URL("../../../sw.js", import.meta.url)).catch(() => {});
}
