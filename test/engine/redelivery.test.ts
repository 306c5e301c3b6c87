import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { change, DispatchFixture, done, failure, manifest, quiet, trigger } from "./fixture.ts";

/** A function that has received `a` at 11. */
async function told(triggers = [trigger()]) {
  const it = await (await DispatchFixture.open({ manifest: manifest({}, triggers) })).listed();
  it.subscription.change(change("Added", "a", 11));
  await quiet(it.runner);
  return it;
}

describe("a redelivery", () => {
  it("comes flagged, under the id that its state has, after what is before it in its lane", async () => {
    const { function: copy, runner, subscription } = await told();
    runner.answer = () => undefined;
    expect(copy.redeliver("settings", change("Added", "a", 11))).toBe("told");
    subscription.change(change("Modified", "a", 12));
    await quiet(runner);
    await runner.end("a");
    await runner.end("a");
    expect(runner.told).toEqual(["Added a@11", "Modified a@11 !", "Modified a@12"]);
    expect(runner.deliveries.map(({ id }) => id)).toEqual([
      "settings:uid-a/11/Added",
      "settings:uid-a/11/Modified",
      "settings:uid-a/12/Modified",
    ]);
  });

  it("repeats a run's event under its own id and type", async () => {
    const it = await told();
    it.function.redeliver("settings", change("Added", "a", 11), [...it.function.runs][0]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
    expect(it.runner.deliveries[1]?.id).toBe("settings:uid-a/11/Added");
  });

  it("is not made of a state that the trigger has not come to, or that an event of its own will tell", async () => {
    const it = await told();
    expect(it.function.redeliver("settings", change("Added", "a", 12))).toBe("news");
    expect(it.function.redeliver("settings", change("Added", "b", 9))).toBe("news");
    expect(it.function.redeliver("settings", change("Added", "a", 11, { uid: "another" }))).toBe("news");
    it.runner.answer = () => undefined;
    it.subscription.change(change("Modified", "a", 13));
    expect(it.function.redeliver("settings", change("Added", "a", 13))).toBe("waits");
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Modified a@13"]);
  });

  it("goes by the trigger's conditions and events", async () => {
    const large = trigger({ matchConditions: [{ name: "large", expression: "object.spec.rv > 11" }] });
    const it = await told([large]);
    it.subscription.change(change("Added", "b", 12));
    await quiet(it.runner);
    expect(it.function.redeliver("settings", change("Added", "a", 11))).toBe("filtered");
    expect(it.function.redeliver("settings", change("Added", "b", 12))).toBe("told");
    const deletions = await told([trigger({ events: ["Deleted"] })]);
    expect(deletions.function.redeliver("settings", change("Added", "a", 11))).toBe("filtered");
    const additions = await told([trigger({ events: ["Added"] })]);
    additions.function.redeliver("settings", change("Added", "a", 11));
    await quiet(additions.runner);
    expect(additions.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
  });

  it("survives a kill once it is saved, and becomes a dead letter where it fails for good", async () => {
    const first = await told();
    first.runner.answer = () => undefined;
    first.dispatcher.hold("copy", "command");
    first.function.redeliver("settings", change("Added", "a", 11));
    await first.function.saved();
    first.runner.answer = () => failure();
    const second = await first.restart({
      manifest: manifest({ retry: { ...manifest().delivery.retry, maxAttempts: 1 } }),
    });
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added a@11", "Modified a@11 !"]);
    expect([...second.disk.letters.values()]).toMatchObject([{ id: "settings:uid-a/11/Modified", name: "a" }]);
  });

  it("never delivers a state unflagged under an id that was delivered before", async () => {
    type Step = "change" | "redeliver" | "end" | "kill";
    const step = fc.constantFrom<Step>("change", "redeliver", "end", "kill");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        let it = await told();
        it.runner.answer = () => undefined;
        let version = 11;
        for (const next of steps) {
          if (next === "change") it.subscription.change(change("Modified", "a", ++version));
          if (next === "redeliver") it.function.redeliver("settings", change("Added", "a", version));
          if (next === "end" && it.runner.open.has("a")) await it.runner.end("a");
          await it.clock.advance(300);
          if (next !== "kill") continue;
          it = await it.restart();
          // Unfinished events are sent again.
          for (let at = 11; at <= version; at++) it.subscription.change(change("Modified", "a", at));
          await it.clock.advance(300);
        }
        it.runner.answer = () => done;
        if (it.runner.open.has("a")) await it.runner.end("a");
        await it.clock.advance(60_000);
        const unflagged = it.runner.deliveries.filter(({ redelivered, attempt }) => !redelivered && attempt === 1);
        const ids = unflagged.map(({ id }) => id);
        expect(ids).toEqual([...new Set(ids)]);
        expect(ids.filter((id) => id.endsWith("Modified"))).toHaveLength(version - 11);
      }),
      { numRuns: 60 },
    );
  });
});
