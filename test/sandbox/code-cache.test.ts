import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createContext, Script } from "node:vm";
import { expect, it } from "vitest";
import { guestScript } from "../../runtime/sandbox/host/guest-script.ts";

it("no isolate compiles again what ran of the bootstrap in the first one since V8 has other flags", async () => {
  const program = join(import.meta.dirname, "code-cache.program.ts");
  // With the flag of executors, which isolated-vm requires.
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-node-snapshot", program]);
  for (const [first = 0, ...later] of JSON.parse(stdout) as number[][])
    expect(Math.max(...later)).toBeLessThan(first / 3);
});

it("no isolate makes functions of the libraries before its handler needs one", async () => {
  const bootstrap = new Script(await guestScript());
  bootstrap.runInContext(createContext({}));
  // The code that each isolate reads; with the libraries' functions it would be 127 KB.
  expect(bootstrap.createCachedData().length).toBeLessThan(100_000);
});
