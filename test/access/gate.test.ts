import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallGate } from "../../runtime/access/gate.ts";
import { settle } from "../virtual-clock.ts";

describe("a gate", () => {
  it("never has more calls under way than it may, loses none, and keeps their order", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.nat(20), { maxLength: 30 }),
        async (atOnce, ends) => {
          const gate = new CallGate({ atOnce, waiting: 100, waitingBytes: 100 });
          const signal = new AbortController().signal;
          const open: (() => void)[] = [];
          const started: number[] = [];
          let most = 0;
          const passing = ends.map((_end, index) =>
            gate.pass(signal, 1, async () => {
              started.push(index);
              const { promise, resolve } = Promise.withResolvers<void>();
              open.push(resolve);
              most = Math.max(most, open.length);
              await promise;
            }),
          );
          for (const end of ends) {
            await settle();
            open.splice(end % open.length, 1)[0]?.();
          }
          await Promise.all(passing);
          expect(most).toBe(Math.min(atOnce, ends.length));
          expect(started).toEqual(ends.map((_end, index) => index));
          expect(gate.idle).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("gives the place of a call that is ended while it waits to the next", async () => {
    const gate = new CallGate({ atOnce: 1, waiting: 2, waitingBytes: 2 });
    const first = Promise.withResolvers<void>();
    const ended = new AbortController();
    const running = gate.pass(new AbortController().signal, 1, () => first.promise);
    const waiting = gate.pass(ended.signal, 1, async () => "never");
    const next = gate.pass(new AbortController().signal, 1, async () => "next");
    ended.abort(new Error("over"));
    await expect(waiting).rejects.toThrow("over");
    first.resolve();
    await running;
    expect(await next).toBe("next");
    expect(gate.idle).toBe(true);
  });
});
