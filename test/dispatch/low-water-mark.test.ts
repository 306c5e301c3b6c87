import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LowWaterMark, type MarkEntry } from "../../runtime/dispatch/low-water-mark.ts";

const event = (rv: number): MarkEntry => ({ resourceVersion: String(rv), outstanding: 1, firm: false });
const bookmark = (rv: number): MarkEntry => ({ resourceVersion: String(rv), outstanding: 0, firm: true });

describe("the low-water mark", () => {
  it("is below every unfinished entry, never goes back, and reaches the last bookmark when all is done", () => {
    const step = fc.record({
      step: fc.integer({ min: 1, max: 50 }),
      kind: fc.constantFrom("event", "bookmark", "again"),
    });
    const plan = fc.array(step, { maxLength: 40 });
    fc.assert(
      fc.property(plan, fc.infiniteStream(fc.nat()), (steps, picks) => {
        const mark = new LowWaterMark("5");
        const open: MarkEntry[] = [];
        let rv = 9;
        let last = 5;
        const check = () => {
          const now = Number(mark.value);
          expect(now).toBeGreaterThanOrEqual(last);
          for (const entry of open) expect(now).toBeLessThan(Number(entry.resourceVersion));
          last = now;
        };
        const settle = (pick: number) => {
          const [entry] = open.splice(pick % open.length, 1);
          if (entry) mark.settle(entry);
        };
        for (const { step, kind } of steps) {
          if (kind === "again") {
            // What a restart reads again of before the mark is done already.
            mark.push({ resourceVersion: String(1 + (step % rv)), outstanding: 0, firm: false });
            check();
            continue;
          }
          rv += step;
          const entry = kind === "bookmark" ? bookmark(rv) : event(rv);
          if (kind === "event") open.push(entry);
          mark.push(entry);
          check();
          const pick = picks.next().value ?? 0;
          if (open.length > 0 && pick % 2 === 0) settle(pick);
          check();
        }
        while (open.length > 0) settle(picks.next().value ?? 0);
        mark.push(bookmark(rv + 1));
        expect([mark.value, mark.length]).toEqual([String(rv + 1), 0]);
      }),
    );
  });

  it("passes a resourceVersion that two objects share only when something newer followed", () => {
    const mark = new LowWaterMark("5");
    const [first, second, third] = [event(9), event(9), event(10)];
    mark.push(first);
    mark.settle(first);
    expect(mark.value).toBe("5");
    mark.push(second);
    mark.settle(second);
    expect(mark.value).toBe("5");
    mark.push(third);
    mark.settle(third);
    expect(mark.value).toBe("9");
  });

  it("waits at the end of a list until all that the list brought is terminal, then moves in one step", () => {
    const mark = new LowWaterMark("5");
    const list: MarkEntry = { resourceVersion: "30", outstanding: 2, firm: true };
    const live = event(31);
    mark.push(list);
    mark.push(live);
    mark.settle(live);
    mark.settle(list);
    expect(mark.value).toBe("5");
    mark.settle(list);
    expect(mark.value).toBe("30");
  });

  it("goes back only when resourceVersions did", () => {
    const mark = new LowWaterMark("500");
    mark.push(bookmark(400));
    expect(mark.value).toBe("500");
    mark.push({ ...bookmark(300), rewinds: true });
    expect(mark.value).toBe("300");
  });
});
