import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("an executor compiles at once while it gets 3,000 events a second, and waits again when no more come", async () => {
  const program = join(import.meta.dirname, "tier-up.program.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-node-snapshot", "--single-threaded", program]);
  expect(JSON.parse(stdout)).toEqual([true, false]);
});
