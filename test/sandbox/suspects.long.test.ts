import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import type { Launch, LinkListener } from "../../runtime/sandbox/host/link.ts";
import { encodeFrame, FrameReader, frameType, maxFrameUp } from "../../runtime/sandbox/wire.ts";
import { fixtureForTest, unstoppable } from "./fixture.ts";

/** Time inside an entry from which a function is a suspect, in milliseconds. */
const longMs = 100;

/** A fixture that counts the entries of executors into events' code, with a clock that the test can advance. */
function watchedFixture() {
  let entered = 0;
  const how: { reason?: "memory" } = {};
  let skewMs = 0;
  const children = launchChild();
  const listeners: LinkListener[] = [];
  const launch: Launch = (listener) => {
    listeners.push(listener);
    const reader = new FrameReader(maxFrameUp);
    return children({
      opened: () => listener.opened(),
      data(chunk) {
        for (const { type, header } of reader.push(Buffer.from(chunk))) {
          if (type === frameType.entering) entered += (JSON.parse(header) as { events: unknown[] }).events.length;
        }
        listener.data(chunk);
      },
      ended: (reason, detail) => listener.ended(how.reason ?? reason, detail),
    });
  };
  const clock = { ...systemClock, monotonic: () => performance.now() + skewMs };
  const inside = async (events: number) => {
    await expect.poll(() => entered, { timeout: 10_000 }).toBe(events);
    skewMs += longMs;
  };
  const fixture = fixtureForTest({ launch, clock });
  /** Makes the executor's memory exceed its cap at this moment. */
  const outgrow = async () => {
    how.reason = "memory";
    const [executor] = await fixture.sandbox.executors();
    process.kill(executor?.pid ?? expect.unreachable(), "SIGKILL");
  };
  /** The first executor sends a frame that no genuine executor sends. */
  const breach = () => listeners[0]?.data(Buffer.concat(encodeFrame(frameType.unload, { functionId: 1 })));
  const later = (ms: number) => {
    skewMs += ms;
  };
  return { fixture, inside, outgrow, breach, later };
}

/** Occupies its isolate's thread for a long time, in an entry that is allowed to. */
const busyFor = (ms: number) =>
  `export default () => { const until = Date.now() + ${ms}; while (Date.now() < until); };`;
const busy = busyFor(1500);
const limits = { cpuMs: 20_000 };

describe("when an executor dies with several functions inside", () => {
  it("the one whose broken limit its thread has not heeded yet is charged, whoever else has been inside for long", async () => {
    const { fixture, inside } = watchedFixture();
    await fixture.load("hog", unstoppable, { cpuMs: 50 });
    await fixture.load("innocent", busyFor(15_000), limits);
    const [executor] = await fixture.sandbox.executors();
    const innocent = fixture.run("innocent", { timeoutMs: 30_000 });
    const hog = fixture.run("hog", { timeoutMs: 30_000 });
    await inside(2);
    expect(await hog).toMatchObject({ type: "failed" });
    fixture.sandbox.unload("hog");
    process.kill(executor?.pid ?? expect.unreachable(), "SIGKILL");
    expect(await innocent).toEqual({ type: "interrupted" });
    await expect.poll(() => fixture.sandbox.status("innocent")?.state, { timeout: 10_000 }).not.toBe("loading");
    expect(fixture.sandbox.status("innocent")).toMatchObject({ state: "ready", kills: 0 });
    expect(fixture.deaths.flatMap(({ culprits }) => culprits)).not.toContain("innocent");
  });

  it.each([
    ["whoever killed it", "exited"],
    ["having sent what no executor of ours sends", "breach"],
  ])(
    "%s, none is charged; each runs alone until it has earned trust in a minute and twenty events, and then joins the others again",
    async (_, reason) => {
      const { fixture, inside, breach, later } = watchedFixture();
      for (const name of ["a", "b"])
        await fixture.load(
          name,
          "export default (e) => { if (e.trigger === 'busy') { const until = Date.now() + 3000; while (Date.now() < until); } };",
          limits,
        );
      const running = ["a", "b"].map((name) => fixture.run(name, { trigger: "busy", timeoutMs: 30_000 }));
      const [executor] = await fixture.sandbox.executors();
      await inside(2);
      if (reason === "breach") breach();
      else process.kill(executor?.pid ?? expect.unreachable(), "SIGKILL");
      expect(await Promise.all(running)).toEqual([{ type: "interrupted" }, { type: "interrupted" }]);
      const states = () => ["a", "b"].map((name) => fixture.sandbox.status(name));
      expect(states()).toMatchObject([
        { state: "quarantined", kills: 0 },
        { state: "quarantined", kills: 0 },
      ]);
      expect(fixture.deaths).toMatchObject([{ reason }]);
      const runAll = async (runs: number) => {
        for (let run = 0; run < runs; run++)
          for (const name of ["a", "b"]) expect((await fixture.run(name)).type).toBe("ok");
      };
      await runAll(25);
      expect(states()).toMatchObject([{ state: "quarantined" }, { state: "quarantined" }]);
      later(60_000);
      await runAll(1);
      await expect.poll(() => states().map((state) => state?.state)).toEqual(["ready", "ready"]);
      expect(states()).toMatchObject([
        { state: "ready", kills: 0 },
        { state: "ready", kills: 0 },
      ]);
      // The shared executor and the spare.
      await expect.poll(async () => (await fixture.sandbox.executors()).length, { timeout: 5000 }).toBe(2);
    },
  );
});

describe("when an executor outgrows its memory", () => {
  it("who happens to be inside is not charged, since another may have taken it before", async () => {
    const { fixture, inside, outgrow } = watchedFixture();
    await fixture.load("hoarder", "export default () => {};");
    await fixture.load("innocent", busy, limits);
    expect((await fixture.run("hoarder")).type).toBe("ok");
    const running = fixture.run("innocent", { timeoutMs: 30_000 });
    await inside(2);
    await outgrow();
    expect(await running).toEqual({ type: "interrupted" });
    expect(fixture.sandbox.status("innocent")).toMatchObject({ state: "quarantined", kills: 0 });
  });

  it("who was there alone is its culprit, inside or not", async () => {
    const { fixture, inside, outgrow } = watchedFixture();
    await fixture.load("hoarder", "export default () => {};");
    expect((await fixture.run("hoarder")).type).toBe("ok");
    await inside(1);
    await outgrow();
    await expect.poll(() => fixture.deaths).toEqual([{ reason: "memory", culprits: ["hoarder"] }]);
    expect(fixture.sandbox.status("hoarder")?.kills).toBe(1);
  });
});

describe("when an executor dies with several events of one function inside", () => {
  it("all run again one at a time, and the one that did it is charged alone", async () => {
    const fixture = fixtureForTest();
    const code =
      "export default (e) => { if (e.trigger === 'bomb') { const m = new Map(); for (let i = 0; ; i++) m.set(i, { i }); } };";
    await fixture.load("f", code, limits);
    for (let run = 0; run < 50; run++) await fixture.run("f");
    const triggers = ["a", "b", "bomb", "c", "d"];
    const ends = await Promise.all(
      triggers.map(async (trigger) => {
        for (;;) {
          const outcome = await fixture.run("f", { trigger, timeoutMs: 30_000 });
          if (outcome.type !== "interrupted") return outcome.type === "failed" ? outcome.error.code : outcome.type;
        }
      }),
    );
    expect(ends).toEqual(["ok", "ok", "WF_SANDBOX_MEMORY", "ok", "ok"]);
  });
});

describe("a function in quarantine", () => {
  it("takes its executor with it when it is unloaded", async () => {
    const fixture = fixtureForTest();
    await fixture.load("calm", "export default () => {};");
    const code = unstoppable.replace("() =>", "(e) => e.trigger !== 'calm' &&");
    await fixture.load("bomb", code, { cpuMs: 200 });
    for (let run = 0; run < 2; run++) await fixture.runToDeath("bomb");
    expect(fixture.sandbox.status("bomb")).toMatchObject({ state: "parked", detail: /it brought 2 executors down/ });
    await expect
      .poll(() => fixture.sandbox.status("bomb"), { timeout: 10_000 })
      .toMatchObject({ state: "quarantined", detail: /until its code changes/ });
    expect((await fixture.run("bomb", { trigger: "calm" })).type).toBe("ok");
    fixture.sandbox.unload("bomb");
    await expect.poll(async () => (await fixture.sandbox.executors()).length, { timeout: 5000 }).toBe(2);
    expect((await fixture.run("calm")).type).toBe("ok");
  });
});

describe("an executor that is stopped, not dead,", () => {
  it("is replaced, and its events run again uncounted or charged to who was inside", async () => {
    const { fixture, inside } = watchedFixture();
    await fixture.load("f", busy, limits);
    await fixture.load(
      "calm",
      `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" });`,
    );
    fixture.answer = () => new Promise(() => {});
    const waiting = fixture.run("calm", { timeoutMs: 60_000 });
    await expect.poll(() => fixture.calls.length).toBe(1);
    const running = fixture.run("f", { timeoutMs: 30_000 });
    await inside(2);
    const [executor] = await fixture.sandbox.executors();
    process.kill(executor?.pid ?? expect.unreachable(), "SIGSTOP");
    expect(await waiting).toEqual({ type: "interrupted" });
    expect(await running).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_KILLED" } });
    fixture.answer = () => ({ ok: true, json: "{}" });
    expect((await fixture.run("calm")).type).toBe("ok");
    expect(fixture.deaths).toEqual([{ reason: "silent", culprits: ["f"] }]);
  });
});
