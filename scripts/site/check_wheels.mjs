/**
 * micropip installs the locked wheels in the order given, without a network: what a wheel needs must be there by then.
 *
 * node check_wheels.mjs RUNTIME FOLDER MICROPIP WHEEL...
 */

import path from "node:path";
import { boot, main, mount } from "./pyodide_host.mjs";

const CHECK = `
import micropip

for file in files:
    await micropip.install(f"emfs:/wheels/{file}", index_urls="emfs:/no-index")

import pydantic

class Probe(pydantic.BaseModel):
    size: int

if Probe.model_validate_json('{"size": 3}').size != 3:
    raise SystemExit("pydantic does not work")
`;

main(async () => {
  const [runtime, folder, micropip, ...wheels] = process.argv.slice(2);
  const python = await boot(runtime);
  mount(python, folder, "/wheels");
  await python.loadPackage(path.resolve(folder, micropip), { messageCallback: () => {} });
  python.globals.set("files", python.toPy(wheels));
  await python.runPythonAsync(CHECK);
});
