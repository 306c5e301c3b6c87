import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const events = ["a", "b", "c"].map((id, n) => ({ id, type: "Modified", object: { n } }));
const batch = { batch: ["a", "b", "c"], body: Buffer.from(JSON.stringify(events)) };

async function outcomeOf(code: string) {
  const fixture = fixtureForTest();
  await fixture.load("f", code);
  return { outcome: await fixture.run("f", batch), fixture };
}

describe("a handler of batches", () => {
  it("gets a list of events, each with its object", async () => {
    const { fixture } = await outcomeOf("export default (events, ctx) => ctx.log.info('seen', { events });");
    expect(fixture.logs[0]?.fields.events).toEqual(events);
  });

  it.each([
    ["nothing", "undefined", undefined],
    ["an empty list", "{ failed: [] }", undefined],
    ["some ids", "{ failed: [events[2].id, 'a'] }", [2, 0]],
    ["a promise of some", "Promise.resolve({ failed: ['b'] })", [1]],
  ])("that returns %s has done the others", async (_, value, failed) => {
    const { outcome } = await outcomeOf(`export default (events) => (${value});`);
    expect(outcome).toEqual({ type: "ok", durationMs: expect.any(Number), ...(failed && { failed }) });
  });

  it.each([
    ["an id of no event", "{ failed: ['z'] }", "no event of the batch"],
    ["no list", "{ failed: 'a' }", "no list"],
    ["a list without an end", "{ failed: { length: 1e9, 0: 'a', 1: 'a', 2: 'a', 3: 'a' } }", "more events than"],
    ["a getter that throws", "{ get failed() { throw new Error('mine'); } }", "mine"],
  ])("that returns %s has failed", async (_, value, message) => {
    const { outcome } = await outcomeOf(`export default () => (${value});`);
    expect(outcome).toMatchObject({ type: "failed", error: { message: expect.stringContaining(message) } });
  });

  it("that throws has failed with all of it, also where a body is not JSON", async () => {
    expect((await outcomeOf("export default () => { throw new Error('no'); };")).outcome.type).toBe("failed");
    const fixture = fixtureForTest();
    await fixture.load("f", "export default () => {};");
    const bad = { ...batch, body: Buffer.from("[{") };
    expect(await fixture.run("f", bad)).toMatchObject({ type: "permanent", error: { code: "WF_SANDBOX_BAD_EVENT" } });
  });
});
