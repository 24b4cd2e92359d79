/** Boots Python from what was downloaded, and answers requests through one function of it. */

import { leftOut, packages, runtime } from "./release.js";

const folder = new URL(runtime, import.meta.url).href;
const loader = import(`${folder}pyodide.mjs`);
const factory = import(`${folder}pyodide.asm.mjs`);
for (const wanted of [loader, factory]) wanted.catch(() => {});

/** @typedef {{answer: (request: string) => string | Promise<string>, prepareRecord: () => Promise<void>}} Python */

/** The bytes of a pack; a host may have unpacked it on the way. @param {ArrayBuffer} pack */
async function unpacked(pack) {
  const start = new Uint8Array(pack, 0, 2);
  if (start[0] !== 0x1f || start[1] !== 0x8b) return new Uint8Array(pack);
  const stream = new Blob([pack]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Answer the requests that Pyodide makes for its own files with what is already here.
 * @param {Record<string, () => Response>} answers by address
 */
function answerFetches(answers) {
  const native = self.fetch.bind(self);
  self.fetch = (resource, options) => {
    const answer = answers[String(resource)];
    return answer ? Promise.resolve(answer()) : native(resource, options);
  };
}

/**
 * Let Pyodide instantiate the module that was compiled while it arrived. Returns a promise that rejects when that fails: Pyodide
 * itself would only log it and never settle.
 * @param {WebAssembly.Module} module
 */
function useCompiled(module) {
  const streaming = WebAssembly.instantiateStreaming;
  return new Promise((_, reject) => {
    WebAssembly.instantiateStreaming = async (_source, imports) => {
      WebAssembly.instantiateStreaming = streaming;
      try {
        return { module, instance: await WebAssembly.instantiate(module, imports) };
      } catch (error) {
        reject(error);
        throw error;
      }
    };
  });
}

/** Write the files of a pack into Python's file system. @param {Uint8Array} pack */
function writeFiles(python, pack) {
  const end = pack.indexOf(10);
  const made = new Set();
  let at = end + 1;
  for (const [name, size] of JSON.parse(new TextDecoder().decode(pack.subarray(0, end)))) {
    const parent = name.slice(0, name.lastIndexOf("/"));
    if (!made.has(parent)) python.FS.mkdirTree(parent);
    made.add(parent);
    python.FS.writeFile(name, pack.subarray(at, at + size), { canOwn: true });
    at += size;
  }
}

/** @param {string} address */
async function bytesOf(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address.slice(folder.length)}: HTTP status ${response.status}`);
  return response.arrayBuffer();
}

/**
 * @param {import("./download.js").Parts} parts
 * @returns {Promise<Python>}
 */
export async function boot({ module, stdlib, core }) {
  const unpacking = Promise.all([unpacked(stdlib), unpacked(core)]);
  const [{ loadPyodide, version }, { default: createPyodideModule }] = await Promise.all([loader, factory]);
  const [library, modules] = await unpacking;
  answerFetches({
    [`${folder}pyodide.asm.wasm`]: () => new Response(null),
    [`${folder}stdlib.bin`]: () => new Response(library),
  });
  const broken = useCompiled(module);
  const python = await Promise.race([
    broken,
    loadPyodide({
      indexURL: folder,
      stdLibURL: `${folder}stdlib.bin`,
      packageBaseUrl: `${folder}wheels/`,
      createPyodideModule,
      lockFileContents: {
        info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_0", python: "3.14.2", version },
        packages,
      },
      stdout: (line) => console.debug(line),
      stderr: (line) => console.debug(line),
    }),
  ]);
  writeFiles(python, modules);
  return door(python);
}

/** What the worker may do with Python. @returns {Promise<Python>} */
async function door(python) {
  const own = python.pyimport("enginemem_browser");
  let missing = "";
  let whole = null;
  const report = (name) => {
    missing ||= name;
  };

  /** A module of the standard library was not shipped: bring the whole library. */
  function bringWholeLibrary() {
    console.debug(`the standard library's ${missing} is fetched`);
    whole ??= bytesOf(`${folder}stdlib-whole.zip`).then((zip) => {
      python.FS.writeFile("/lib/python314.zip", new Uint8Array(zip));
      own.whole_library_is_there();
    });
    return whole;
  }

  let handle;
  try {
    handle = own.start(leftOut, report);
  } catch (error) {
    if (!missing) throw error;
    await bringWholeLibrary();
    handle = own.start("", report);
  }

  async function again(request) {
    await bringWholeLibrary();
    missing = "";
    return handle(request);
  }

  let record = null;
  return {
    answer(request) {
      const text = handle(request);
      return missing && !whole ? again(request) : text;
    },
    prepareRecord() {
      record ??= bringRecordParts(python, own).catch((error) => {
        record = null;
        throw error;
      });
      return record;
    },
  };
}

/** Pydantic, and the modules of the standard library that only it needs, from our own origin. */
async function bringRecordParts(python, own) {
  writeFiles(python, await unpacked(await bytesOf(`${folder}record.bin`)));
  own.join_packages();
  const problems = [];
  await python.loadPackage("pydantic", { messageCallback: () => {}, errorCallback: (line) => problems.push(line) });
  if (!("pydantic" in python.loadedPackages)) throw new Error(problems.join(" ") || "pydantic was not loaded");
}
