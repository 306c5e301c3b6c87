import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Namespaces } from "./ledger.ts";

const recorder = join(import.meta.dirname, "functions/recorder");

/**
 * Writes the auditor's function into a folder of functions, for these namespaces. `shares`: so many of it divide the objects
 * among them, by the numbers in their names. `shards`: over how many slots each is spread.
 */
export async function writeRecorders(
  functions: string,
  shares: number,
  { objects, records }: Namespaces,
  shards = 1,
): Promise<void> {
  const manifest = await readFile(join(recorder, "function.yaml"), "utf8");
  for (let share = 0; share < shares; share++) {
    const name = shares === 1 ? "recorder" : `recorder-${share}`;
    const own = join(functions, name);
    await cp(recorder, own, { recursive: true });
    const expression = `int(object.metadata.name.substring(5)) % ${shares} == ${share}`;
    const conditions = `matchConditions: [{ name: share, expression: '${expression}' }]`;
    await writeFile(
      join(own, "function.yaml"),
      manifest
        .replace("{ name: recorder }", `{ name: ${name} }`)
        .replace("concurrency: 16", `concurrency: 16\n    shards: ${shards}`)
        .replace("[audit]", `[${objects}]`)
        .replace("[audit-records]", `[${records}]`)
        .replace(/kube-root-ca.crt$/m, (found) => (shares === 1 ? found : `${found}\n        ${conditions}`)),
    );
  }
}
