import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FunctionLog } from "../../runtime/observe/function-log.ts";
import { createLog } from "../../runtime/observe/log.ts";

function logged() {
  const written: string[] = [];
  const kept = new FunctionLog({ write: (line: string) => void written.push(line) });
  return { kept, written, log: createLog("info", kept) };
}

const messages = (kept: FunctionLog, name: string, after = 0) =>
  kept.after(name, after).map(({ line }) => JSON.parse(line).msg);

describe("the functions' log", () => {
  it("passes every line on, and keeps those that the runtime gave a function's name to", () => {
    const { kept, written, log } = logged();
    log.info({ function: "greet" }, "one");
    log.info({ fields: { function: "greet" } }, "a handler's field");
    log.info({ function: "other" }, "two");
    log.debug({ function: "greet" }, "below the level");
    log.warn({ function: "greet" }, "three");
    expect(written).toHaveLength(4);
    expect(messages(kept, "greet")).toEqual(["one", "three"]);
    expect(messages(kept, "greet", kept.after("greet", 0)[0]?.number)).toEqual(["three"]);
    expect(messages(kept, "nobody")).toEqual([]);
  });

  it("gives all it has to whoever comes with a number of another process", () => {
    const { kept, log } = logged();
    log.info({ function: "greet" }, "one");
    expect(messages(kept, "greet", Number.MAX_SAFE_INTEGER)).toEqual(["one"]);
  });

  it("numbers lines by the time, so that they rise over a restart as well", () => {
    let now = 1_000;
    const numbersOf = (count: number) => {
      const kept = new FunctionLog({ write: () => {} }, { now: () => now });
      const log = createLog("info", kept);
      for (let n = 0; n < count; n++) log.info({ function: "greet" }, "said");
      return kept.after(undefined, 0).map(({ number }) => number);
    };
    expect(numbersOf(3)).toEqual([1_000_000, 1_000_001, 1_000_002]);
    now = 1_001;
    expect(numbersOf(1)).toEqual([1_001_000]);
  });

  it("keeps each function's newest lines, within its share and 16 MiB in all, however many write", () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 120_000 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 100 }), (lengths, functions) => {
        const { kept, log } = logged();
        for (let n = 0; n < functions; n++) {
          for (const [index, length] of lengths.entries()) {
            log.info({ function: `f${n}`, index, text: "x".repeat(length) }, "said");
          }
        }
        let all = 0;
        for (let n = 0; n < functions; n++) {
          const lines = kept.after(`f${n}`, 0);
          const size = lines.reduce((sum, { line }) => sum + line.length, 0);
          expect(size).toBeLessThanOrEqual(256 * 1024);
          all += size;
          const indices = lines.map(({ line }) => JSON.parse(line).index);
          expect(indices).toEqual(indices.toSorted((a, b) => a - b));
        }
        expect(all).toBeLessThanOrEqual(16 * 2 ** 20);
      }),
      { numRuns: 10 },
    );
  });

  it("wakes whoever waits for a function's next line, and nobody else", async () => {
    const { kept, log } = logged();
    const late = new AbortController();
    let woken = 0;
    const waits = kept.another("greet", late.signal).then(() => woken++);
    const others = kept.another("other", late.signal);
    log.info({ function: "greet" }, "one");
    await waits;
    expect(woken).toBe(1);
    late.abort();
    await others;
    expect(messages(kept, "other")).toEqual([]);
  });
});
