import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("an isolate that disposes of itself does so under a look at its CPU time, and no fault comes of it", async () => {
  const program = join(import.meta.dirname, "gone.program.ts");
  // With the flag of executors, which isolated-vm requires.
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-node-snapshot", program]);
  expect(stdout).toBe("20");
});
