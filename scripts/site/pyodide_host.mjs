/** Pyodide under Node: for compiling the packs at build time and for running the core's tests in it. */

import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

/**
 * What Pyodide wants to know of packages that it might fetch: nothing. The site brings its own.
 * @param {string} version Pyodide's own version
 */
export function emptyLock(version) {
  return {
    info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_0", python: "3.14.2", version },
    packages: {},
  };
}

/**
 * Boot Pyodide from a folder that holds its files.
 * @param {string} runtime the folder with pyodide.mjs, pyodide.asm.mjs and pyodide.asm.wasm
 * @param {{stdlib?: string, env?: Record<string, string>}} options stdlib: the standard library's zip, by default
 *   the one in the folder
 */
export async function boot(runtime, { stdlib, env = {} } = {}) {
  const folder = path.resolve(runtime);
  const { loadPyodide, version } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")).href);
  return loadPyodide({
    indexURL: folder,
    stdLibURL: stdlib ? path.resolve(stdlib) : undefined,
    lockFileContents: emptyLock(version),
    packageBaseUrl: folder,
    env: { PYTHONHASHSEED: "0", PYTHONDONTWRITEBYTECODE: "1", PYTHONNODEBUGRANGES: "1", ...env },
  });
}

/**
 * Show a folder of this machine to Python at a path.
 * @param {object} pyodide @param {string} host @param {string} guest
 */
export function mount(pyodide, host, guest) {
  pyodide.FS.mkdirTree(guest);
  pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: path.resolve(host) }, guest);
}

/**
 * Write the files of a pack (see scripts/site/packs.py) into Pyodide's file system.
 * @param {object} pyodide @param {Uint8Array} pack unpacked bytes
 */
export function unpack(pyodide, pack) {
  const end = pack.indexOf(10);
  let at = end + 1;
  for (const [name, size] of JSON.parse(new TextDecoder().decode(pack.subarray(0, end)))) {
    pyodide.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
    pyodide.FS.writeFile(name, pack.subarray(at, (at += size)));
  }
}

/** Run a Python file in its own namespace. @param {object} pyodide @param {string} file */
export function runFile(pyodide, file, globals = {}) {
  const space = pyodide.toPy({ __name__: "__main__", __file__: file, ...globals });
  return pyodide.runPython(readFileSync(file, "utf8"), { globals: space, filename: file });
}

/** Run a program: its failure is one short message and exit status 1. @param {() => Promise<number | void>} program */
export async function main(program) {
  try {
    process.exit((await program()) ?? 0);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
