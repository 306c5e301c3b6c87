import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import type { Launch, LinkListener } from "../../runtime/sandbox/host/link.ts";
import type { Events, Load } from "../../runtime/sandbox/messages.ts";
import { encodeFrame, FrameReader, frameType, maxFrameDown } from "../../runtime/sandbox/wire.ts";
import { until } from "../tools/until.ts";
import { fixtureForTest } from "./fixture.ts";

/** Behaviour of a simulated executor when it receives functions' code. */
interface Conduct {
  /** Names of functions whose module kills the executor when it is loaded. */
  readonly deadly: Set<string>;
  /**
   * Names of functions that load on an executor which reports at the same time that it ends because of the first function.
   */
  readonly late: Set<string>;
  /** True if executors end as soon as they have started. */
  cannotStart: boolean;
}

/**
 * An executor without a process: runs each module and each event at once and successfully, except as `conduct` says.
 */
function simulated(listener: LinkListener, { deadly, late, cannotStart }: Conduct): ReturnType<Launch> {
  const reader = new FrameReader(maxFrameDown);
  let isDead = false;
  const die = () => {
    if (isDead) return;
    isDead = true;
    queueMicrotask(() => listener.ended("exited", "SIGKILL"));
  };
  const say = (type: number, header: unknown, body = "") => {
    if (!isDead) listener.data(Buffer.concat(encodeFrame(type, header, [Buffer.from(body)])));
  };
  const visit = (functionId: number, events: readonly number[]) => {
    say(frameType.entering, { functionId, realm: 1, events });
    say(frameType.drained, { functionId, realm: 1 }, `[[${events.join(",")}],[],[],[],-1,[],0]\n`);
  };
  const hear = (type: number, header: string) => {
    if (type === frameType.load) {
      const { functionId, name } = JSON.parse(header) as Load;
      if (deadly.has(name)) {
        say(frameType.entering, { functionId, realm: 1, events: [] });
        die();
      } else {
        visit(functionId, []);
        const loaded = encodeFrame(frameType.loaded, { functionId });
        const doomed = encodeFrame(frameType.doomed, { functionId: 1, reason: "catastrophic" });
        listener.data(Buffer.concat(late.delete(name) ? [...loaded, ...doomed] : loaded));
      }
    } else if (type === frameType.events) {
      const { functionId, items } = JSON.parse(header) as Events;
      visit(
        functionId,
        items.map(([no]) => no),
      );
    }
  };
  setImmediate(() => {
    listener.opened();
    if (cannotStart) die();
  });
  return {
    pid: undefined,
    peakMemory: 0,
    // Later, as over a pipe, and after all functions that are placed in this turn.
    write: (bytes, taken) =>
      setImmediate(() => {
        taken?.();
        if (!isDead) for (const { type, header } of reader.push(bytes)) hear(type, header);
      }),
    pause: () => undefined,
    resume: () => undefined,
    capMemory: () => undefined,
    kill: die,
  };
}

/** A fixture with simulated executors, in which pauses take no time. */
function simulatedFixture() {
  const conduct: Conduct = { deadly: new Set(), late: new Set(), cannotStart: false };
  const living = new Set<ReturnType<Launch>>();
  const launch: Launch = (listener) => {
    const link = simulated(listener, conduct);
    living.add(link);
    return link;
  };
  const clock = {
    ...systemClock,
    after: (delayMs: number, ...rest: [() => void, { unref?: boolean }?]) => systemClock.after(delayMs / 1000, ...rest),
  };
  const fixture = fixtureForTest({ launch, clock });
  const killAll = () => {
    for (const link of living) link.kill();
    living.clear();
  };
  return { fixture, conduct, killAll };
}

const code = "export default () => {};";

describe("while executors die one after another", () => {
  it("of hostile functions' code, no event of another fails, however many there are", async () => {
    const { fixture, conduct, killAll } = simulatedFixture();
    const hostile = Array.from({ length: 12 }, (_, number) => `hostile-${number}`);
    for (const name of [...hostile, "innocent"]) await fixture.load(name, code);
    for (const name of hostile) conduct.deadly.add(name);
    killAll();
    const endOf = async (name: string) => {
      for (;;) {
        const { type } = await fixture.run(name);
        // An attempt whose executor ended because of another's code runs again, uncounted.
        if (type !== "interrupted") return type;
      }
    };
    const ends = await Promise.all([...hostile, "innocent"].map(endOf));
    expect(ends.slice(0, -1)).toEqual(hostile.map(() => "failed"));
    expect(ends.at(-1)).toBe("ok");
    expect(fixture.deaths.length).toBeGreaterThan(hostile.length);
    expect(fixture.sandbox.status("innocent")).toMatchObject({ kills: 0 });
    // Its executor may have ended once more because of another's code.
    await until("it is loaded", 10_000, async () => fixture.sandbox.status("innocent")?.state === "ready");
  });

  it("before any code ran there, the function is told to have no executor, and its event fails", async () => {
    const { fixture, conduct, killAll } = simulatedFixture();
    await fixture.load("f", code);
    conduct.cannotStart = true;
    killAll();
    expect(await fixture.run("f")).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_EXECUTOR" } });
    expect(fixture.sandbox.status("f")).toMatchObject({ state: "failed", detail: /WF_SANDBOX_EXECUTOR/ });
    await expect(fixture.load("g", code)).rejects.toThrow("WF_SANDBOX_EXECUTOR");
    conduct.cannotStart = false;
    expect((await fixture.run("f")).type).toBe("ok");
  });

  it("a function that has just been loaded there is loaded again on another, and its events run", async () => {
    const { fixture, conduct } = simulatedFixture();
    await fixture.load("first", code);
    conduct.late.add("f");
    await fixture.load("f", code);
    await until("that executor has ended", 10_000, async () => fixture.deaths.length === 1);
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.sandbox.status("f")).toMatchObject({ state: "ready", kills: 0 });
  });
});
