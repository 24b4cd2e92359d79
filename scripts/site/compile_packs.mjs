/**
 * Traces which modules the core imports in Pyodide and compiles them there.
 *
 * node compile_packs.mjs RUNTIME STDLIB WHEEL WHEELS OUT: Pyodide's files, the standard library as a zip, the unpacked
 * wheel of the project, the folder with pydantic's wheels, where to write. Writes boot.zip, core/, record/ and
 * omitted.txt.
 */

import { readdirSync } from "node:fs";
import path from "node:path";
import { boot, main, mount } from "./pyodide_host.mjs";

/** Faces that no browser opens, and facts of pages that the build renders. */
const LEFT_OUT = ["enginemem/cli.py", "enginemem/render/terminal.py", "enginemem/data/logs.json"];

/** What only checking a pasted record needs. */
const RECORD_PARTS = ["enginemem/schema/", "enginemem/gpu_record."];

const TRACE_CORE = `
import sys
sys.path[:0] = ["/wheel", "/own", "/tools"]
import traced
boot = traced.loaded_modules()
import enginemem_browser, request_mix
failed = request_mix.run(request_mix.plan_requests())
core = traced.loaded_modules() - boot
`;

const TRACE_RECORD_AND_WRITE = `
failed += request_mix.run(request_mix.record_requests())
record = traced.loaded_modules() - boot - core
import compile_packs as packs
own = {f"{packs.SITE_PACKAGES}/enginemem_browser.pyc": packs.compiled_file("/own/enginemem_browser.py")}
package = packs.package_files("/wheel", left_out)
for_record = {name: content for name, content in package.items() if any(f"/{part}" in name for part in record_parts)}
for name in for_record:
    del package[name]
packs.write_all("/out/core", package | packs.stdlib_files(core) | own)
packs.write_all("/out/record", for_record | packs.stdlib_files(record))
packs.write_all("/out", {"boot.zip": packs.boot_zip(boot), "omitted.txt": " ".join(packs.omitted(boot | core)).encode()})
failed
`;

main(async () => {
  const [runtime, stdlib, wheel, wheels, out] = process.argv.slice(2);
  const here = import.meta.dirname;
  const python = await boot(runtime, { stdlib });
  mount(python, wheel, "/wheel");
  mount(python, out, "/out");
  mount(python, here, "/tools");
  mount(python, path.resolve(here, "../../site_assets/py"), "/own");
  python.globals.set("left_out", python.toPy(LEFT_OUT));
  python.globals.set("record_parts", python.toPy(RECORD_PARTS));
  python.runPython(TRACE_CORE);
  const names = readdirSync(wheels).filter((name) => name.endsWith(".whl") && !name.startsWith("micropip")).sort();
  await python.loadPackage(names.map((name) => path.resolve(wheels, name)), { messageCallback: () => {} });
  const failed = python.runPython(TRACE_RECORD_AND_WRITE);
  if (failed) throw new Error(`${failed} requests of the mix failed inside`);
});
