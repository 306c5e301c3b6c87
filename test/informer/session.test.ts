import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const waits = 2000;

test("a watch that waits again and again for those who can take no more keeps nothing of each wait", async () => {
  const program = join(import.meta.dirname, "session.program.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", program, String(waits)]);
  expect(stdout).toMatch(/^-?\d+$/);
  expect(Number(stdout)).toBeLessThan(waits / 10);
});
