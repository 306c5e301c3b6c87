import { describe, expect, it } from "vitest";
import { PauseGate } from "../../runtime/engine/work/pause-gate.ts";

/** A gate with so many waiting attempts, and its requests. */
function gateBefore(waiting: number) {
  const asked = { recalled: 0, retried: 0, begun: 0 };
  const pump = () => {
    while (!gate.isShut() && !gate.isFull(1) && asked.begun < waiting) {
      gate.enter();
      asked.begun++;
    }
  };
  const gate: PauseGate = new PauseGate({ recall: () => asked.recalled++, retryAll: () => asked.retried++, pump });
  pump();
  return { gate, asked };
}

async function isOver(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);
}

describe("a gate", () => {
  it("lets the next attempt begin when one ends", () => {
    const { gate, asked } = gateBefore(3);
    expect(asked.begun).toBe(1);
    gate.leave();
    expect(asked.begun).toBe(2);
  });

  it("is paused once the last attempt has ended, and lets none begin before it goes on", async () => {
    const { gate, asked } = gateBefore(3);
    const paused = gate.pause();
    expect(asked.recalled).toBe(1);
    expect(await isOver(paused)).toBe(false);
    gate.leave();
    expect(await isOver(paused)).toBe(true);
    expect(asked.begun).toBe(1);
    gate.resume();
    expect(asked).toEqual({ recalled: 1, retried: 0, begun: 2 });
  });

  it("stays shut while either new code or a reason that is no event's shuts it", async () => {
    const { gate, asked } = gateBefore(3);
    gate.hold();
    const paused = gate.pause();
    gate.leave();
    await paused;
    gate.renew();
    expect(asked.begun).toBe(1);
    gate.release();
    expect(asked).toEqual({ recalled: 2, retried: 2, begun: 2 });
  });

  it("tries nothing again where nothing held it", () => {
    const { gate, asked } = gateBefore(3);
    gate.release();
    expect(asked.retried).toBe(0);
  });

  for (const isHeld of [false, true])
    it(`lets nothing begin once it has stopped ${isHeld ? "while held" : "in its work"}, whatever opens it`, async () => {
      const { gate, asked } = gateBefore(3);
      if (isHeld) gate.hold();
      const stopped = gate.stop();
      gate.leave();
      await stopped;
      gate.release();
      gate.resume();
      gate.renew();
      expect(asked).toMatchObject({ retried: 0, begun: 1 });
    });
});
