import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { IdleCollector } from "../../runtime/v8/idle-collector.ts";

const mebibyte = 1024 * 1024;
const grown = { young: 16 * mebibyte, used: 40 * mebibyte };
const busy = 0.5;
const quiet = 0.01;

/**
 * Records an `IdleCollector`'s effects on V8: its flags at each collection of young objects, and those that it leaves.
 */
class Noted {
  flags = "";
  readonly collectedUnder: string[] = [];
  readonly collection = new IdleCollector({
    setFlags: (flags) => {
      this.flags = flags;
    },
    collectYoung: () => this.collectedUnder.push(this.flags),
  });

  looks(count: number, utilization: number, heap = grown): void {
    for (let look = 0; look < count; look++) this.collection.look(utilization, heap);
  }
}

test("a loop that has become quiet collects once, and V8 is as before a look later", () => {
  const noted = new Noted();
  noted.looks(10, busy);
  noted.looks(1, quiet);
  expect(noted.collectedUnder).toEqual([]);
  noted.looks(1, quiet);
  expect(noted.collectedUnder).toEqual(["--optimize-for-size --incremental-marking-soft-trigger=1"]);
  noted.looks(1, quiet);
  expect(noted.flags).toBe("--no-optimize-for-size --incremental-marking-soft-trigger=0");
  noted.looks(50, quiet);
  expect(noted.collectedUnder).toHaveLength(1);
});

test("each burst is followed by a collection of its own", () => {
  const noted = new Noted();
  for (const bursts of [1, 2, 3]) {
    noted.looks(1, busy);
    noted.looks(2, quiet);
    expect(noted.collectedUnder).toHaveLength(bursts);
  }
});

test("a loop that is never quiet, or that has little or too much in use, is not held up", () => {
  const noted = new Noted();
  for (let turn = 0; turn < 50; turn++) {
    noted.looks(1, quiet);
    noted.looks(1, busy);
  }
  noted.looks(50, quiet, { young: 1 * mebibyte, used: 30 * mebibyte });
  noted.looks(50, quiet, { young: 32 * mebibyte, used: 65 * mebibyte });
  expect(noted.collectedUnder).toEqual([]);
});

test("V8 keeps no flag of a collection, whenever the looks end", () => {
  const utilizations = fc.array(fc.constantFrom(quiet, busy), { maxLength: 200 });
  fc.assert(
    fc.property(utilizations, (each) => {
      const noted = new Noted();
      for (const utilization of each) noted.looks(1, utilization);
      noted.collection.end();
      expect(["", "--no-optimize-for-size --incremental-marking-soft-trigger=0"]).toContain(noted.flags);
    }),
  );
});

test("a process gives the memory of its young objects back once it is quiet", async () => {
  const program = join(import.meta.dirname, "quiet.program.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-semi-space-size=16", program]);
  const [before = Number.NaN, after = Number.NaN] = stdout.trim().split(" ").map(Number);
  expect(before).toBeGreaterThan(10);
  expect(after).toBeLessThan(before / 4);
});
