import { describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import type { Launch } from "../../runtime/sandbox/host/link.ts";
import type { Load } from "../../runtime/sandbox/messages.ts";
import { FrameReader, frameType, maxFrameDown } from "../../runtime/sandbox/wire.ts";
import { fixtureForTest } from "./fixture.ts";

const code = "export default (e, ctx) => ctx.log.info(ctx.env.TOKEN ?? 'none');";

/**
 * A fixture that notes which functions' code and environment each executor is sent.
 * @param onKill is given the killing of an executor, in the place of its being killed at once
 */
function watchedFixture(
  options: Parameters<typeof fixtureForTest>[0] = {},
  onKill: (kill: () => void) => unknown = (kill) => kill(),
) {
  const sent: Set<string>[] = [];
  const children = launchChild();
  const launch: Launch = (listener) => {
    const names = new Set<string>();
    sent.push(names);
    const reader = new FrameReader(maxFrameDown);
    const link = children(listener);
    return {
      get pid() {
        return link.pid;
      },
      get peakMemory() {
        return link.peakMemory;
      },
      write(bytes, taken) {
        for (const { type, header } of reader.push(Buffer.from(bytes)))
          if (type === frameType.load) names.add((JSON.parse(header) as Load).name);
        link.write(bytes, taken);
      },
      pause: () => link.pause(),
      resume: () => link.resume(),
      capMemory: (bytes) => link.capMemory(bytes),
      kill: () => onKill(() => link.kill()),
    };
  };
  const fixture = fixtureForTest({ launch, ...options });
  /** The functions that were sent to each executor. */
  const shared = () => sent.map((names) => [...names].sort()).filter((names) => names.length > 0);
  return { fixture, shared };
}

describe("a trust group", () => {
  it("has an executor that nobody else's code or environment comes to, before or after a death", async () => {
    const { fixture, shared } = watchedFixture({ executors: 2 });
    const groups: Record<string, string | undefined> = { a1: "a", a2: "a", b: "b", c1: undefined, c2: undefined };
    for (const [name, trustGroup] of Object.entries(groups)) {
      await fixture.load(name, code, { env: { TOKEN: name }, ...(trustGroup && { trustGroup }) });
    }
    const runAll = async () => {
      for (const name of Object.keys(groups)) {
        let type: string;
        do type = (await fixture.run(name)).type;
        while (type === "interrupted");
        expect(type).toBe("ok");
      }
    };
    await runAll();
    for (const { pid } of await fixture.sandbox.executors()) process.kill(pid ?? expect.unreachable(), "SIGKILL");
    await expect.poll(() => fixture.deaths.length, { timeout: 10_000 }).toBe(3);
    await runAll();
    const groupsOf = (names: readonly string[]) => new Set(names.map((name) => groups[name]));
    expect(shared()).toHaveLength(6);
    for (const names of shared()) expect(groupsOf(names).size).toBe(1);
    expect(shared()).toContainEqual(["a1", "a2"]);
    expect(new Set(fixture.logs.map(({ message }) => message))).toEqual(new Set(Object.keys(groups)));
  });

  it("that a function leaves by a change of its manifest sees no more of it", async () => {
    const { fixture, shared } = watchedFixture();
    await fixture.load("f", code, { trustGroup: "a" });
    await fixture.load("f", code, { trustGroup: "b" });
    await fixture.load("g", code, { trustGroup: "a" });
    expect((await fixture.run("f")).type).toBe("ok");
    expect((await fixture.run("g")).type).toBe("ok");
    expect(shared()).toEqual([["f"], ["f"], ["g"]]);
  });

  it("gives its executor up once its last function is gone, or had no event for long; the next event has one", async () => {
    const { fixture } = watchedFixture({ idleMs: 300 });
    await fixture.load("stays", code);
    await fixture.load("idles", code, { trustGroup: "a" });
    await fixture.load("goes", code, { trustGroup: "b" });
    for (const name of ["stays", "idles", "goes"]) expect((await fixture.run(name)).type).toBe("ok");
    const count = async () => (await fixture.sandbox.executors()).length;
    fixture.sandbox.unload("goes");
    // The executor that functions without a group share, and the spare.
    await expect.poll(count, { timeout: 10_000 }).toBe(2);
    expect(fixture.sandbox.status("idles")).toMatchObject({ state: "ready", detail: "" });
    expect((await fixture.run("idles")).type).toBe("ok");
    expect(fixture.deaths).toEqual([]);
  });

  it("loses no event that comes while its idle executor ends: the next one runs it, and it was never interrupted", async () => {
    const ending: (() => void)[] = [];
    let isEnding = true;
    const { fixture } = watchedFixture({ idleMs: 300 }, (kill) => (isEnding ? ending.push(kill) : kill()));
    await fixture.load("idles", code, { trustGroup: "a" });
    await expect.poll(() => ending.length, { timeout: 10_000 }).toBe(1);
    const running = fixture.run("idles");
    // It is sent after this turn of the event loop.
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    isEnding = false;
    for (const kill of ending) kill();
    expect((await running).type).toBe("ok");
  });

  it("waits for an executor while all that there may be are at work, and takes the place of one that is idle", async () => {
    const { fixture } = watchedFixture({ ownExecutors: 1 });
    const waits = "export default (e, ctx) => ctx.kube.get({ apiVersion: 'v1', kind: 'Pod', name: 'p' });";
    await fixture.load("a", waits, { trustGroup: "a" });
    let answer = () => {};
    fixture.answer = () => new Promise((resolve) => (answer = () => resolve({ ok: true, json: "{}" })));
    const running = fixture.run("a", { timeoutMs: 60_000 });
    await expect.poll(() => fixture.calls.length).toBe(1);
    let isLoaded = false;
    const loading = fixture.load("b", code, { trustGroup: "b" }).then(() => (isLoaded = true));
    await new Promise((resolve) => systemClock.after(1500, () => resolve(undefined)));
    expect(isLoaded).toBe(false);
    answer();
    expect((await running).type).toBe("ok");
    await loading;
    expect((await fixture.run("b")).type).toBe("ok");
    expect(fixture.deaths).toEqual([]);
  });
});
