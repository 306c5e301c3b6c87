import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { LowWaterMark, type MarkEntry } from "../../runtime/engine/state/low-water-mark.ts";

const event = (rv: number): MarkEntry => ({
  resourceVersion: resourceVersion(String(rv)),
  outstanding: 1,
  firm: false,
});
const bookmark = (rv: number): MarkEntry => ({
  resourceVersion: resourceVersion(String(rv)),
  outstanding: 0,
  firm: true,
});

describe("the low-water mark", () => {
  it("is below every unfinished entry, never goes back, and reaches the last bookmark when all is done", () => {
    const step = fc.record({
      step: fc.integer({ min: 1, max: 50 }),
      kind: fc.constantFrom("event", "bookmark", "again", "done", "done again"),
    });
    const plan = fc.array(step, { maxLength: 40 });
    fc.assert(
      fc.property(plan, fc.infiniteStream(fc.nat()), fc.constantFrom(2, 1_000), (steps, picks, room) => {
        const mark = new LowWaterMark(resourceVersion("5"), room);
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
            // A change before the mark that is read again after a restart is already handled.
            mark.push({ resourceVersion: resourceVersion(String(1 + (step % rv))), outstanding: 0, firm: false });
            check();
            continue;
          }
          if (kind === "done again") {
            mark.note(resourceVersion(String(1 + (step % rv))));
            check();
            continue;
          }
          rv += step;
          if (kind === "done") {
            mark.note(resourceVersion(String(rv)));
            check();
            continue;
          }
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

  it("holds little of what was done behind one that is not, and forgets none of what is not done", () => {
    const mark = new LowWaterMark(resourceVersion("5"));
    const stuck = event(10);
    mark.push(stuck);
    const later: MarkEntry[] = [];
    let most = 0;
    for (let rv = 11; rv < 200_000; rv++) {
      const entry = event(rv);
      mark.push(entry);
      if (rv % 1_000 === 0) later.push(entry);
      else mark.settle(entry);
      most = Math.max(most, mark.length);
    }
    expect(most).toBeLessThan(3_000);
    expect(mark.value).toBe("5");
    mark.settle(stuck);
    expect(Number(mark.value)).toBeLessThan(1_000);
    for (const entry of later.splice(0, 100)) mark.settle(entry);
    expect(Number(mark.value)).toBeGreaterThan(99_000);
    expect(Number(mark.value)).toBeLessThan(101_000);
    for (const entry of later) mark.settle(entry);
    mark.push(bookmark(300_000));
    expect([mark.value, mark.length]).toEqual(["300000", 0]);
  });

  it("passes a resourceVersion that two objects share only when something newer followed", () => {
    const mark = new LowWaterMark(resourceVersion("5"));
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
    const mark = new LowWaterMark(resourceVersion("5"));
    const list: MarkEntry = { resourceVersion: resourceVersion("30"), outstanding: 2, firm: true };
    const live = event(31);
    mark.push(list);
    mark.push(live);
    mark.settle(live);
    mark.settle(list);
    expect(mark.value).toBe("5");
    mark.settle(list);
    expect(mark.value).toBe("30");
  });

  it("goes back only by a restart, which waits for what came before and takes no position from it", () => {
    const mark = new LowWaterMark(resourceVersion("500"));
    mark.push(bookmark(400));
    expect(mark.value).toBe("500");
    const [before, list] = [event(600), { ...bookmark(300), outstanding: 1 }];
    mark.push(before);
    mark.push(list);
    mark.restart(list);
    expect(mark.value).toBeUndefined();
    mark.settle(list);
    expect(mark.value).toBeUndefined();
    mark.settle(before);
    expect(mark.value).toBe("300");
  });
});
