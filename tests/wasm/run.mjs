/**
 * Runs the built site's own Python under Node.
 *
 * node run.mjs SITE answers FILE OUT: for each request, a line of FILE, the sha256 of its answer, a line of OUT.
 * node run.mjs SITE records FILE OUT: the same for requests that check a pasted record, with pydantic.
 * node run.mjs SITE python FILE ARGUMENT...: runs a Python file against the site's core, the repository at /repo.
 */

import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { boot, main, mount, unpack } from "../../scripts/site/pyodide_host.mjs";

const REPOSITORY = path.resolve(import.meta.dirname, "../..");

/** The one folder inside a folder. */
function only(folder) {
  const [name, ...others] = readdirSync(folder);
  if (!name || others.length) throw new Error(`${folder}: not exactly one build`);
  return path.join(folder, name);
}

/** Python as the site ships it, its core unpacked. @param {string} site */
async function siteRuntime(site) {
  const runtime = only(path.join(site, "assets/py"));
  const scratch = mkdtempSync(path.join(tmpdir(), "enginemem-"));
  try {
    const stdlib = path.join(scratch, "stdlib.zip");
    writeFileSync(stdlib, gunzipSync(readFileSync(path.join(runtime, "stdlib.bin"))));
    const python = await boot(runtime, { stdlib });
    unpack(python, gunzipSync(readFileSync(path.join(only(path.join(site, "assets/app")), "core.bin"))));
    return { python, runtime };
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** The worker's way in; a module that was left out ends the run. */
function door(python, leftOut) {
  const missing = [];
  const handle = python.pyimport("enginemem_browser").start(leftOut, (name) => missing.push(name));
  return (request) => {
    const text = handle(request);
    if (missing.length) throw new Error(`the site's standard library lacks ${missing.join(", ")}`);
    return text;
  };
}

/** What the worker does before it checks a record. */
async function bringRecordParts(python, runtime, packages) {
  unpack(python, gunzipSync(readFileSync(path.join(runtime, "record.bin"))));
  python.pyimport("enginemem_browser").join_packages();
  const wheels = Object.values(packages).map((known) => path.join(runtime, "wheels", known.file_name));
  await python.loadPackage(wheels, { messageCallback: () => {} });
}

async function answers(site, file, out, withRecords) {
  const { python, runtime } = await siteRuntime(site);
  const { leftOut, packages } = await import(path.join(only(path.join(site, "assets/app")), "release.js"));
  const handle = door(python, leftOut);
  if (withRecords) await bringRecordParts(python, runtime, packages);
  const requests = readFileSync(file, "utf8").split("\n").filter(Boolean);
  const digest = (request) => createHash("sha256").update(handle(request)).digest("hex");
  writeFileSync(out, requests.map((request) => `${digest(request)}\n`).join(""));
}

/** Tests need more of the standard library than the site does: the whole one stands behind the site's. */
async function runPython(site, file, ...given) {
  const { python, runtime } = await siteRuntime(site);
  mount(python, runtime, "/runtime");
  mount(python, REPOSITORY, "/repo");
  python.globals.set("argv", python.toPy([file, ...given]));
  return python.runPython(`
import sys
sys.path.append("/runtime/stdlib-whole.zip")
import enginemem, enginemem.web, os, runpy
if not enginemem.__file__.startswith("/lib/"):
    raise SystemExit(f"not the site's core: {enginemem.__file__}")
for package in [module for name, module in sys.modules.items() if isinstance(getattr(module, "__path__", None), list)]:
    if package.__path__[:1] and package.__path__[0].startswith("/lib/python314.zip/"):
        package.__path__.append(package.__path__[0].replace("/lib/python314.zip", "/runtime/stdlib-whole.zip"))
os.chdir("/repo")
sys.argv = argv
status = 0
try:
    sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
    runpy.run_path(argv[0], run_name="__main__")
except SystemExit as end:
    status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
status
`);
}

main(() => {
  const [site, what, ...rest] = process.argv.slice(2);
  if (what === "answers" || what === "records") return answers(site, ...rest, what === "records");
  if (what === "python") return runPython(site, ...rest);
  throw new Error("run.mjs SITE answers|records FILE OUT | run.mjs SITE python FILE ARGUMENT...");
});
