import fc from "fast-check";
import { expect, test } from "vitest";
import { createLog } from "../../runtime/observe/log.ts";
import { LogWriter } from "../../runtime/observe/log-writer.ts";
import { VirtualClock } from "../virtual-clock.ts";

const mebi = 2 ** 20;

/** PIPE_BUF on Linux. */
const atomic = 4096;

/** A pipe with limited room, as on Linux: a small write is accepted completely or not at all, a larger one in part. */
class Pipe {
  room = 0;
  isBroken = false;
  text = "";

  readonly write = (bytes: Buffer): number => {
    if (this.isBroken) throw new Error("no space left on device");
    const taken = bytes.length <= atomic && bytes.length > this.room ? 0 : Math.min(bytes.length, this.room);
    this.room -= taken;
    this.text += bytes.toString("latin1", 0, taken);
    return taken;
  };

  get lines() {
    return this.text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { msg: string; n?: number; lines?: number; function?: string });
  }
}

type Kind = "run" | "own" | "alarm";

/** A log to a pipe that is not read yet. */
function fixture() {
  const [pipe, clock] = [new Pipe(), new VirtualClock()];
  const dropped: (readonly [string, string])[] = [];
  const writer = new LogWriter(pipe.write, clock, (...what) => void dropped.push(what));
  const log = createLog("info", writer);
  let n = 0;
  /** Writes a line that exceeds `length` by less than 300 bytes. */
  const write = (kind: Kind, length: number) => {
    const fields = { n: n++, ...(kind === "run" && { function: "f", run: "1" }), pad: "x".repeat(length) };
    if (kind === "alarm") log.warn(fields, kind);
    else log.info(fields, kind);
  };
  return { pipe, clock, writer, dropped, write };
}

test("whatever the reader does, each line is written whole and in its order or is counted, and at most 8 MiB wait", async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constantFrom<Kind>("run", "own", "alarm"),
      length: fc.constantFrom(0, 4000, 70_000, mebi),
    }),
    fc.record({ room: fc.constantFrom(10, 5000, 65_536, 3 * mebi) }),
    fc.record({ isBroken: fc.boolean() }),
    fc.record({ passMs: fc.constantFrom(1, 60, 1000, 10_000) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const { pipe, clock, dropped, write } = fixture();
      let [written, bytes] = [0, 0];
      for (const each of steps) {
        if ("kind" in each) {
          const before = dropped.length;
          write(each.kind, each.length);
          written++;
          if (dropped.length === before) bytes += each.length;
        } else if ("room" in each) pipe.room += each.room;
        else if ("isBroken" in each) pipe.isBroken = each.isBroken;
        else await clock.advance(each.passMs);
        expect(bytes - pipe.text.length).toBeLessThanOrEqual(8 * mebi);
      }
      pipe.room = Number.POSITIVE_INFINITY;
      pipe.isBroken = false;
      await clock.advance(1000);
      const numbers = pipe.lines.flatMap(({ n }) => n ?? []);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      expect(numbers.length + dropped.length).toBe(written);
      expect(pipe.lines.reduce((sum, { lines = 0 }) => sum + lines, 0)).toBe(dropped.length);
    }),
    { numRuns: 60 },
  );
});

test("lines of runs are dropped first, the runtime's warnings last", () => {
  const { dropped, write } = fixture();
  const fill = (kind: Kind) => {
    for (let count = 0; count < 1000; count++) write(kind, 10_000);
    const taken = 1000 - dropped.length;
    dropped.length = 0;
    return Math.round((taken * 10_000) / mebi);
  };
  expect([fill("run"), fill("own"), fill("alarm")]).toEqual([6, 1, 1]);
});

test("what is dropped is counted by function and cause", () => {
  const { dropped, write } = fixture();
  for (let count = 0; count < 10; count++) write("run", mebi);
  for (let count = 0; count < 3; count++) write("own", mebi);
  expect(new Set(dropped.map(String))).toEqual(new Set(["f,reader", ",reader"]));
});

test("a reader that never catches up learns every ten seconds what it misses", async () => {
  const { pipe, clock, write } = fixture();
  for (let second = 0; second < 60; second++) {
    for (let count = 0; count < 4; count++) write("run", mebi);
    pipe.room += mebi;
    await clock.advance(1000);
  }
  const told = pipe.lines.filter(({ lines }) => lines !== undefined);
  expect(told.length).toBeGreaterThan(3);
  expect(told.length).toBeLessThan(8);
});

test("a line that fits a pipe's buffer is never torn, though the process be killed", async () => {
  const { pipe, clock, write } = fixture();
  for (let count = 0; count < 50; count++) write("run", 37 * count);
  for (let turn = 0; turn < 30; turn++) {
    pipe.room = 5000;
    await clock.advance(100);
    expect(pipe.text.endsWith("\n")).toBe(true);
  }
  expect(pipe.lines).toHaveLength(50);
});
