import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Builders } from "../../runtime/bundle/builders.ts";
import { Filter } from "../../runtime/engine/filter/filter.ts";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import type { Launch } from "../../runtime/sandbox/host/link.ts";
import { SandboxFixture } from "../sandbox/fixture.ts";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { Innocents } from "./innocents.ts";

const limits = { cpuMs: 250, memoryMb: 32 };
const program = join(import.meta.dirname, "executors", "executor.program.ts");

/** Allocates memory of the executor that is not counted: isolated-vm copies the error's texts out of the isolate. */
const strike = `const s = "x".repeat(2 ** 29 - 30); Promise.reject({ message: s, stack: s });`;

/**
 * Ten innocents with a hostile function in the same executor, or in another one if the first executor is the test's own program.
 */
async function fixtureWithInnocents(launch?: Launch): Promise<{ fixture: SandboxFixture; innocents: Innocents }> {
  const fixture = new SandboxFixture({ executors: 1, ...(launch && { launch }) });
  onTestFinished(() => fixture.close());
  return { fixture, innocents: await Innocents.start(fixture, limits) };
}

/** JSON that is larger than a pipe's buffer; created once, so that it does not count as the parent's lag. */
const largeAnswer = JSON.stringify("x".repeat(2 ** 20));

const table: string[] = [];

async function report(kind: string, fixture: SandboxFixture, innocents: Innocents, name = "evil"): Promise<void> {
  await innocents.seen(100);
  await innocents.stop();
  const { state, kills } = fixture.sandbox.status(name) ?? { state: "not loaded", kills: 0 };
  table.push(
    `${kind.padEnd(42)} deaths ${String(fixture.deaths.length).padStart(2)}, charged ${kills}, now ${state.padEnd(11)} innocents' p99 ${innocents.p99().toFixed(0).padStart(4)} ms, interruptions ${innocents.interruptions}, lag p99 ${innocents.lag().p99.toFixed(0)} ms`,
  );
  // Each event has exactly one outcome, and no function is charged for another's action.
  expect(innocents.endings).toEqual({ ok: innocents.begun });
  expect(innocents.names.map((one) => fixture.sandbox.status(one)?.kills)).toEqual(innocents.names.map(() => 0));
  expect(innocents.lag().p99).toBeLessThan(50);
}

describe("a hostile function that is patient harms its neighbours a few times at most:", () => {
  afterAll(() => {
    process.stdout.write(`${table.join("\n")}\n`);
  });

  it("it behaves for 21 events after each load, and then strikes", async () => {
    const { fixture, innocents } = await fixtureWithInnocents();
    const code = `let seen = 0; export default async () => { if (++seen <= 21) return; ${strike} };`;
    await fixture.load("evil", code, limits);
    innocents.forget();
    const endings: Record<string, number> = {};
    await until("it is parked for the third time", 60_000, async () => {
      const { type } = await fixture.run("evil", { timeoutMs: 5000 });
      endings[type] = (endings[type] ?? 0) + 1;
      return (fixture.sandbox.status("evil")?.kills ?? 0) >= 4;
    });
    expect(fixture.sandbox.status("evil")).toMatchObject({ state: "parked" });
    // For each executor that it had to itself and took down, one of its events is charged.
    expect(endings.failed).toBeGreaterThanOrEqual(3);
    const shared = fixture.deaths.length - (fixture.sandbox.status("evil")?.kills ?? 0);
    expect(shared).toBeLessThanOrEqual(3);
    // At each of those deaths, the innocents' events in that executor are interrupted and run again.
    expect(innocents.interruptions).toBeLessThanOrEqual(3 * innocents.names.length);
    await report("behaves for 21 events, then strikes", fixture, innocents);
  }, 90_000);

  it("it strikes while it is loaded, and is deployed again and again", async () => {
    const { fixture, innocents } = await fixtureWithInnocents();
    innocents.forget();
    const loads: string[] = [];
    for (let version = 0; version < 8; version++) {
      const code = `const pile = new Map(); for (let key = 0; ; key++) pile.set(key, { key, version: ${version} });\nexport default () => {};`;
      loads.push(
        await fixture.load("evil", code, limits).then(
          () => "loaded",
          (error: Error) => error.message,
        ),
      );
    }
    expect(loads.every((message) => /^WF_SANDBOX_(MEMORY|LOAD_TIME|KILLED) .*evil\.ts/.test(message))).toBe(true);
    // The first version and three more have a clean record each; from then on it is loaded alone.
    expect(innocents.interruptions).toBeLessThanOrEqual(4 * innocents.names.length);
    await report("strikes at load, deployed eight times", fixture, innocents);
  }, 90_000);

  it.each([
    ["calls whose answers it does not read", "reads nothing", "breach"],
    ["doom, and stays", "dooms its executor, and stays", "stuck"],
  ])("its executor is its own: %s", async (misdeed, kind, reason) => {
    let launched = 0;
    const [honest, owned] = [launchChild(), launchChild({ args: [program, misdeed] })];
    // The innocents run in the first executor.
    const { fixture, innocents } = await fixtureWithInnocents((listener) =>
      launched++ === 0 ? honest(listener) : owned(listener),
    );
    fixture.answer = () => ({ ok: true, json: largeAnswer });
    innocents.forget();
    await fixture.load("evil", "export default () => {};", { ...limits, trustGroup: "evil" });
    expect((await fixture.run("evil")).type).toBe("failed");
    await expect.poll(() => fixture.deaths, { timeout: 10_000 }).toContainEqual({ reason, culprits: ["evil"] });
    expect(innocents.interruptions).toBe(0);
    await report(kind, fixture, innocents);
  });

  it("it strikes while it is built: no executor knows of it", async () => {
    const { fixture, innocents } = await fixtureWithInnocents();
    const syntax = "a.b(c,d);".repeat(1_500_000);
    const names = ["a", "b", "c", "d"];
    const handler = names.map((name) => `import "./${name}.ts";`).join("");
    const files = Object.fromEntries(names.map((name) => [`${name}.ts`, `${syntax}\nexport {};`]));
    const folder = folderOf({ ...files, "handler.ts": handler });
    const builders = new Builders({ folder, clock: systemClock });
    onTestFinished(() => builders.close());
    innocents.forget();
    const refused = builders.bundle({ handler: join(folder, "handler.ts") });
    await expect(refused).rejects.toMatchObject({ code: "WF_BUNDLE_LIMIT" });
    expect([innocents.interruptions, fixture.deaths]).toEqual([0, []]);
    await report("strikes while it is built", fixture, innocents);
  }, 90_000);

  it("it strikes in the manifest: conditions that backtrack and multiply, over each event", async () => {
    const { fixture, innocents } = await fixtureWithInnocents();
    const filter = new Filter({
      events: ["Added", "Modified", "Deleted"],
      changedFields: [],
      lastBody: "Full",
      matchConditions: [
        "object.data.x.matches('^(a+)+$')",
        "object.names.all(a, object.names.all(b, a != b || b == a))",
      ].map((expression, index) => ({ name: `c${index}`, expression })),
    });
    const names = Array.from({ length: 6_000 }, (_, index) => `item-${index}`);
    const body = Buffer.from(JSON.stringify({ data: { x: `${"a".repeat(28)}!` }, names }));
    innocents.forget();
    for (let event = 0; event < 200; event++) {
      filter.judge("Modified", body, { hash: undefined, matched: undefined, possiblyOutdated: false }, undefined);
      await new Promise(setImmediate);
    }
    expect([innocents.interruptions, fixture.deaths]).toEqual([0, []]);
    await report("strikes in the manifest, 200 events", fixture, innocents);
  }, 90_000);
});
