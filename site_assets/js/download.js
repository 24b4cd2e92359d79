/** Brings what Python needs to the worker: the interpreter, compiled while it arrives, and two packs of modules. */

import { runtime, sizes } from "./release.js";

const folder = new URL(runtime, import.meta.url);
const core = new URL("./core.bin", import.meta.url);

/** A download that failed, with what to tell: `kind` is http, network, offline or damaged. */
export class DownloadFailure extends Error {
  /** @param {string} kind @param {string} detail */
  constructor(kind, detail) {
    super(detail);
    this.kind = kind;
  }
}

/** @typedef {{module: WebAssembly.Module, stdlib: ArrayBuffer, core: ArrayBuffer}} Parts */

/**
 * Adds up what has arrived of files whose sizes the build knew: bytes on the line, as a usual host compresses them.
 * @param {(loaded: number, total: number) => void} report
 */
function counter(report) {
  const loaded = {};
  const names = ["pyodide.asm.wasm", "stdlib.bin", "core.bin"];
  const total = names.reduce((sum, name) => sum + sizes[name].line, 0);
  return (name, bytes) => {
    loaded[name] = Math.min(sizes[name].line, Math.round((bytes / sizes[name].raw) * sizes[name].line));
    report(Object.values(loaded).reduce((sum, size) => sum + size, 0), total);
  };
}

/** @typedef {{begun: Record<string, Promise<Response>>, again: boolean}} Way requests that are under way; whether to pass the cache by */

/**
 * The response to a request for one of the site's own files, or a DownloadFailure that names it.
 * @param {URL} address @param {Way} way
 */
async function ask(address, { begun, again }) {
  const name = address.pathname.slice(address.pathname.lastIndexOf("/") + 1);
  let response;
  try {
    response = await (begun[address.href] ?? fetch(address, { cache: again ? "reload" : "default" }));
  } catch {
    throw new DownloadFailure(navigator.onLine ? "network" : "offline", name);
  }
  if (!response.ok) throw new DownloadFailure("http", `${name}: HTTP status ${response.status}`);
  return response;
}

/** Read a body to its end and tell how far it is. @param {ReadableStream<Uint8Array>} body */
async function follow(body, progress) {
  const chunks = [];
  let size = 0;
  for (const reader = body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return { chunks, size };
    size += value.length;
    progress(size);
    chunks.push(value);
  }
}

/** A pack, still compressed. @param {URL} address @returns {Promise<ArrayBuffer>} */
async function pack(address, name, way, count) {
  const response = await ask(address, way);
  try {
    const { chunks } = await follow(response.body, (size) => count(name, size));
    return await new Blob(chunks).arrayBuffer();
  } catch {
    throw new DownloadFailure(navigator.onLine ? "network" : "offline", name);
  }
}

/** The interpreter. `arrived` is called when its last byte is here, which is before it is compiled. */
async function interpreter(way, count, arrived) {
  const name = "pyodide.asm.wasm";
  let response = await ask(new URL(name, folder), way);
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("text/")) throw new DownloadFailure("damaged", `${name}: came as ${type}`);
  // The copy is only counted: the browser keeps compiled code for a response that it fetched itself.
  const copy = response.clone();
  copy.body.pipeTo(counting((size) => count(name, size))).catch(() => {}).finally(arrived);
  if (type !== "application/wasm") {
    response = new Response(response.body, { headers: { "Content-Type": "application/wasm" } });
  }
  try {
    return await WebAssembly.compileStreaming(response);
  } catch (error) {
    if (error instanceof WebAssembly.CompileError) throw new DownloadFailure("damaged", `${name}: ${error.message}`);
    throw new DownloadFailure(navigator.onLine ? "network" : "offline", name);
  }
}

/** @param {(size: number) => void} progress */
function counting(progress) {
  let size = 0;
  return new WritableStream({
    write(chunk) {
      size += chunk.length;
      progress(size);
    },
  });
}

/** Addresses that may be asked for before this module is here, the first wanted first. */
export const FIRST = ["pyodide.asm.wasm", "stdlib.bin"].map((name) => new URL(name, folder).href);

/**
 * Everything that Python boots from. Rejects with a DownloadFailure.
 * @param {(loaded: number, total: number) => void} report
 * @param {Way} way
 * @returns {Promise<Parts>}
 */
export async function downloadPython(report, way) {
  const count = counter(report);
  /** @type {() => void} */
  let arrived;
  const wasmIsHere = new Promise((resolve) => {
    arrived = resolve;
  });
  const module = interpreter(way, count, arrived);
  const stdlib = pack(new URL("stdlib.bin", folder), "stdlib.bin", way, count);
  // The core is asked for when the line is free: it is wanted last.
  const ours = wasmIsHere.then(() => pack(core, "core.bin", way, count));
  const [compiled, library, modules] = await Promise.all([module, stdlib, ours]);
  return { module: compiled, stdlib: library, core: modules };
}
