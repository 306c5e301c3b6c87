import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("no isolate compiles again what ran of the bootstrap in the first", async () => {
  const program = join(import.meta.dirname, "code-cache.program.ts");
  // As executors run; isolated-vm asks for the flag.
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-node-snapshot", program]);
  const [first = 0, ...later] = JSON.parse(stdout) as number[];
  expect(Math.max(...later)).toBeLessThan(first / 3);
});
