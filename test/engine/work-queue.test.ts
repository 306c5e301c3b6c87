import { describe, expect, it } from "vitest";
import type { AttemptListener, LoadedCode } from "../../runtime/engine/work/attempt.ts";
import type { LaneEvent } from "../../runtime/engine/work/event.ts";
import { EventLane } from "../../runtime/engine/work/event-lane.ts";
import { WorkQueue } from "../../runtime/engine/work/work-queue.ts";
import { VirtualClock } from "../virtual-clock.ts";

const code = {} as LoadedCode;

/** A queue with so many lanes that begins one attempt at a time, and its requests. */
class OneAtATime extends WorkQueue<LaneEvent, EventLane> {
  readonly asked = { recalled: 0, begun: 0 };
  private readonly listeners: AttemptListener[];

  constructor(lanes: number) {
    const listeners: AttemptListener[] = [];
    const attempts = {
      code,
      counts: () => ({ lastEventAt: undefined, failures: 0, inFlight: listeners.length }),
      recall: () => this.asked.recalled++,
      run: (_event: LaneEvent, _isPaused: () => boolean, listener: AttemptListener) => listeners.push(listener),
    };
    super(attempts as never, new VirtualClock());
    this.listeners = listeners;
    for (let index = 0; index < lanes; index++) {
      const lane = new EventLane(`${index}`);
      lane.push({ attempts: 0, flags: {} } as LaneEvent);
      this.lanes.set(lane.key, lane);
      this.ready.add(lane);
    }
    this.pump();
  }

  protected take(lane: EventLane) {
    const { head } = lane;
    if (!head || this.inProgress > 0) return "full";
    this.asked.begun++;
    return this.run(lane, head);
  }

  protected conclude(lane: EventLane, _: LaneEvent, conclusion: Parameters<AttemptListener["ended"]>[0]): void {
    if (conclusion.type === "again") this.wait(lane, conclusion.why, conclusion.afterMs);
  }

  protected returned(): void {}

  /** The attempt in progress ends. */
  end(why?: "retry" | "requeue"): void {
    const conclusion = why
      ? ({ type: "again", why, afterMs: 60_000, blocked: false } as const)
      : ({ type: "terminal", outcome: "ok" } as const);
    this.listeners.shift()?.ended(conclusion);
  }
}

async function isOver(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(resolve, false))]);
}

describe("a work queue", () => {
  it("lets the next attempt begin when one ends", () => {
    const queue = new OneAtATime(3);
    expect(queue.asked.begun).toBe(1);
    queue.end();
    expect(queue.asked.begun).toBe(2);
  });

  it("is paused once the last attempt has ended, and begins no attempt before it is resumed", async () => {
    const queue = new OneAtATime(3);
    const paused = queue.pause();
    expect(queue.asked.recalled).toBe(1);
    expect(await isOver(paused)).toBe(false);
    queue.end();
    expect(await isOver(paused)).toBe(true);
    expect(queue.asked.begun).toBe(1);
    queue.resume();
    expect(queue.asked).toEqual({ recalled: 1, begun: 2 });
  });

  it("stays shut while either new code or a hold shuts it", async () => {
    const queue = new OneAtATime(3);
    queue.hold();
    const paused = queue.pause();
    queue.end();
    await paused;
    queue.resumeWith(code);
    expect(queue.asked.begun).toBe(1);
    queue.release();
    expect(queue.asked).toEqual({ recalled: 2, begun: 2 });
  });

  for (const end of ["a hold", "new code"])
    it(`attempts retries at once after ${end}, but keeps a time that a handler asked for`, async () => {
      for (const why of ["retry", "requeue"] as const) {
        const queue = new OneAtATime(1);
        queue.hold();
        queue.end(why);
        if (end === "new code") {
          await queue.pause();
          queue.resumeWith(code);
        }
        expect(queue.asked.begun).toBe(1);
        queue.release();
        expect(queue.asked.begun).toBe(why === "retry" ? 2 : 1);
      }
    });

  it("does not attempt retries at once if it was not held", () => {
    const queue = new OneAtATime(1);
    queue.end("retry");
    queue.release();
    expect(queue.asked.begun).toBe(1);
  });

  for (const isHeld of [false, true])
    it(`lets no attempt begin once it has stopped${isHeld ? " while held" : ""}, whatever opens it`, async () => {
      const queue = new OneAtATime(3);
      if (isHeld) queue.hold();
      const stopped = queue.stop();
      queue.end();
      await stopped;
      queue.release();
      queue.resume();
      queue.resumeWith(code);
      expect(queue.asked.begun).toBe(1);
    });
});
