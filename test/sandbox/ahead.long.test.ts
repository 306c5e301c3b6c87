import { describe, expect, it } from "vitest";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import type { HostReply } from "../../runtime/sandbox/host-calls.ts";
import { fixtureForTest, type SandboxFixture } from "./fixture.ts";

/** Reports its start, waits for an answer, and reports its end. */
const waiter = `export default async (event, ctx) => {
  ctx.log.info("begins " + event.id);
  await ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: event.id });
  ctx.log.info("ends " + event.id);
};`;

/** A fixture whose calls the test answers by hand, in their order. */
function patientFixture(): { fixture: SandboxFixture; answer: () => void; calls: () => number } {
  const fixture = fixtureForTest();
  const open: ((reply: HostReply) => void)[] = [];
  fixture.answer = () => new Promise((resolve) => open.push(resolve));
  return { fixture, answer: () => open.shift()?.({ ok: true, json: "{}" }), calls: () => open.length };
}

const said = (fixture: SandboxFixture, verb: string) =>
  fixture.logs.filter(({ message }) => message.startsWith(verb)).map(({ message }) => message.split(" ")[1]);

describe("events that are sent ahead", () => {
  for (const isolation of ["Handler", "Event"] as const) {
    it(`begin in order, never more at once than the concurrency, with isolation: ${isolation}`, async () => {
      const { fixture, answer, calls } = patientFixture();
      await fixture.load("f", waiter, { concurrency: 3, isolation });
      const begun: string[] = [];
      const ids = Array.from({ length: 20 }, (_, index) => `e${index}`);
      const runs = ids.map((id) => run(fixture.sandbox, fixture.delivery("f", { id }), () => begun.push(id)));
      for (let ended = 0; ended < ids.length; ended++) {
        await expect.poll(calls, { interval: 1 }).toBe(Math.min(3, ids.length - ended));
        expect(said(fixture, "begins").length - ended).toBeLessThanOrEqual(3);
        answer();
        await expect.poll(() => said(fixture, "ends").length, { interval: 1 }).toBe(ended + 1);
      }
      expect((await Promise.all(runs)).every(({ type }) => type === "ok")).toBe(true);
      expect(begun).toEqual(ids);
    });
  }

  it("that end at once share an entry, however few may run at once", async () => {
    const fixture = fixtureForTest();
    // A timer's turn can only come between two entries.
    const counting = `let entry = 0; let due = false;
      export default async (event, ctx) => {
        if (!due) { due = true; setTimeout(() => { entry++; due = false; }, 1); }
        await undefined;
        ctx.log.info("in " + entry);
      };`;
    await fixture.load("f", counting, { concurrency: 1 });
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => fixture.run("f")));
    expect(outcomes.every(({ type }) => type === "ok")).toBe(true);
    expect(new Set(said(fixture, "in")).size).toBeLessThan(20);
  });

  it("are given back on a recall that comes while a batch with them is inside", async () => {
    const { fixture, answer, calls } = patientFixture();
    // The first events are cheap, so that a batch of many is inside when the first of the others waits for its answer.
    const busy = `${waiter.replace("async (event, ctx) => {", 'async (event, ctx) => { if (event.id.startsWith("quick")) return; for (const end = Date.now() + 100; Date.now() < end; );')}`;
    await fixture.load("f", busy, { concurrency: 1 });
    await Promise.all(Array.from({ length: 100 }, (_, index) => fixture.run("f", { id: `quick${index}` })));
    const begun: number[] = [];
    const runs = Array.from({ length: 20 }, (_, index) =>
      run(fixture.sandbox, fixture.delivery("f", { id: `slow${index}` }), () => begun.push(index)),
    );
    await expect.poll(() => begun.length, { interval: 1 }).toBe(1);
    fixture.sandbox.recall("f");
    expect(await Promise.all(runs.slice(1))).toEqual(Array(19).fill({ type: "unbegun" }));
    await expect.poll(calls).toBe(1);
    answer();
    expect((await runs[0])?.type).toBe("ok");
    expect(begun).toEqual([0]);
  });

  it("have their whole time from their own begin", async () => {
    const fixture = fixtureForTest();
    await fixture.load("f", `export default () => new Promise((resolve) => setTimeout(resolve, 200));`, {
      concurrency: 1,
    });
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => fixture.run("f", { timeoutMs: 600 })));
    expect(outcomes.map(({ type }) => type)).toEqual(Array(5).fill("ok"));
  });

  it("are given back on a recall, unless they have begun", async () => {
    const { fixture, answer, calls } = patientFixture();
    await fixture.load("f", waiter, { concurrency: 2 });
    const runs = Array.from({ length: 10 }, () => fixture.run("f"));
    await expect.poll(calls).toBe(2);
    fixture.sandbox.recall("f");
    const returned = await Promise.all(runs.slice(2));
    expect(returned).toEqual(Array(8).fill({ type: "unbegun" }));
    answer();
    answer();
    expect((await Promise.all(runs.slice(0, 2))).map(({ type }) => type)).toEqual(["ok", "ok"]);
    expect(fixture.calls).toHaveLength(2);
  });

  it("run on new code where it has not begun them, beside no more of the old than may run in all", async () => {
    const { fixture, answer, calls } = patientFixture();
    await fixture.load("f", waiter, { concurrency: 2 });
    const runs = Array.from({ length: 6 }, () => fixture.run("f"));
    await expect.poll(calls).toBe(2);
    await fixture.load("f", waiter.replaceAll("begins", "starts"), { concurrency: 2 });
    expect(calls()).toBe(2);
    answer();
    await expect.poll(() => said(fixture, "starts").length).toBe(1);
    let ended = 0;
    for (const run of runs) void run.then(() => ended++);
    const step = () => {
      expect(calls()).toBeLessThanOrEqual(2);
      answer();
      return ended;
    };
    await expect.poll(step, { interval: 2 }).toBe(6);
    expect([said(fixture, "begins").length, said(fixture, "starts").length]).toEqual([2, 4]);
  });

  it("are interrupted where the executor dies, and one that had begun alone is charged", async () => {
    const fixture = fixtureForTest();
    const bomb = `export default (event) => { if (event.id === "bomb") (3n ** (10n ** 8n)).toString(); };`;
    await fixture.load("f", bomb, { concurrency: 1 });
    const [first, ...others] = await Promise.all([
      fixture.run("f", { id: "bomb", timeoutMs: 30_000 }),
      ...Array.from({ length: 5 }, () => fixture.run("f")),
    ]);
    expect(first).toMatchObject({ type: "failed" });
    // A doomed executor returns the events that it has not started; they run elsewhere.
    for (const other of others) expect(["ok", "interrupted"]).toContain(other.type);
  });
});
