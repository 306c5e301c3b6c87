import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/**
 * Limits of the files and functions that one change passes: the figures when they were set plus two percent, because timers also
 * fire. They are only ever lowered; the aim is 60 files and 250 functions.
 */
const bounds = [
  { kind: "event", files: 81, functions: 439 },
  { kind: "reconcile", files: 92, functions: 514 },
] as const;

// Runs in a separate process, because the test runner's loader would be counted.
const script = join(import.meta.dirname, "run.ts");
const numbersOf = async (kind: string): Promise<{ readonly files: number; readonly functions: number }> =>
  JSON.parse((await promisify(execFile)(process.execPath, [script, kind, "--json"])).stdout);

test.concurrent.each(bounds)(
  "one $kind passes at most $files files and $functions functions of the parent",
  async ({ kind, files, functions }) => {
    const found = await numbersOf(kind);
    expect(found.files).toBeLessThanOrEqual(files);
    expect(found.functions).toBeLessThanOrEqual(functions);
  },
  120_000,
);
