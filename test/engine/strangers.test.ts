import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { change, DispatchFixture, type DispatchOptions, manifest, quiet, trigger } from "./fixture.ts";

const withOver = (over: Partial<Trigger> = {}): DispatchOptions => ({
  manifest: manifest({}, [trigger({ matchConditions: [{ name: "large", expression: "object.spec.v > 7" }], ...over })]),
});
const options = withOver();

const at = (type: "Added" | "Modified" | "Deleted", name: string, rv: number, v: number) =>
  change(type, name, rv, { spec: { v } });

const opened = async (given: DispatchOptions = options) => (await DispatchFixture.open(given)).listed();

const onRecord = async ({ store }: DispatchFixture) => {
  const [view] = await store.views();
  const rows: string[] = [];
  await store.known(view?.id ?? 0, (key, identity) => rows.push(`${key}@${identity.resourceVersion}`));
  return { rows, mark: view?.cursors[0]?.lowWaterMark };
};

describe("an object that has not met the conditions", () => {
  it("leaves no row, and its changes count as filtered and are passed by the position", async () => {
    const it = await opened();
    it.subscription.change(at("Added", "a", 11, 1));
    it.subscription.change(at("Modified", "a", 12, 2));
    it.subscription.change(at("Deleted", "a", 13, 2));
    it.subscription.change(at("Added", "b", 14, 1));
    await it.clock.advance(1_000);
    expect(await onRecord(it)).toEqual({ rows: [], mark: "13" });
    expect([it.runner.told, it.outcomes.get("filtered")]).toEqual([[], 4]);
  });

  it("is told of as Modified when it comes to meet them, and as Added where it is new", async () => {
    const it = await opened();
    it.subscription.change(at("Added", "a", 11, 1));
    it.subscription.change(at("Modified", "a", 12, 9));
    it.subscription.change(at("Added", "b", 13, 9));
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@12", "Added b@13"]);
    await it.clock.advance(1_000);
    expect((await onRecord(it)).rows).toEqual(["team-a/a@12", "team-a/b@13"]);
  });

  it("is told of by the change that was under way at a kill, flagged, and by no other that comes again", async () => {
    const first = await opened();
    first.runner.answer = () => undefined;
    const changes = [at("Added", "a", 11, 1), at("Modified", "a", 12, 9), at("Modified", "a", 13, 1)];
    for (const each of changes) first.subscription.change(each);
    await first.clock.advance(1_000);
    const it = await first.restart(options);
    it.runner.answer = () => ({ type: "ok", durationMs: 1 });
    for (const each of changes) it.subscription.change(each);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@12", "Modified a@12 #2 !"]);
  });

  it("is told of after a kill as it was before, also where its own coming is behind the position", async () => {
    const first = await opened();
    first.runner.answer = () => undefined;
    first.subscription.change(at("Added", "a", 11, 1));
    first.subscription.bookmark(resourceVersion("11"));
    await first.clock.advance(1_000);
    const matching = at("Modified", "a", 12, 9);
    first.subscription.change(matching);
    await quiet(first.runner);
    const it = await first.restart(options);
    it.runner.answer = () => ({ type: "ok", durationMs: 1 });
    expect(it.subscription.resumeFrom).toBe("11");
    it.subscription.change(matching);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@12", "Modified a@12 #2 !"]);
  });

  it("takes no deletion that was told off the record before the position is past it on disk", async () => {
    const first = await opened();
    const past = [at("Added", "a", 11, 9), at("Deleted", "a", 12, 9)];
    for (const each of past) first.subscription.change(each);
    await quiet(first.runner);
    await first.clock.advance(1_000);
    first.subscription.change(at("Added", "b", 13, 1));
    // Its start is committed separately, before the checkpoint that b advanced is due.
    first.subscription.change(at("Added", "c", 14, 9));
    await quiet(first.runner);
    const it = await first.restart(options);
    const from = Number(it.subscription.resumeFrom);
    for (const each of past) if (Number(each.meta.resourceVersion) > from) it.subscription.change(each);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Added a@11", "Deleted a@12", "Added c@14"]);
  });

  it("is told of by a list after a gap once it meets them, and its end is told only if it was told of before", async () => {
    const first = await opened();
    for (const name of ["stays", "comes", "goes"]) first.subscription.change(at("Added", name, 11, 1));
    for (const name of ["known", "left"]) first.subscription.change(at("Added", name, 12, 9));
    await first.clock.advance(1_000);
    const it = await first.restart(options);
    it.runner.deliveries.length = 0;
    await it.list(20, [at("Added", "stays", 11, 1), at("Added", "comes", 15, 9), at("Added", "left", 16, 1)]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Deleted known@12", "Added comes@15"]);
    await it.clock.advance(6_000);
    expect((await onRecord(it)).rows.sort()).toEqual(["team-a/comes@15", "team-a/known@20", "team-a/left@16"]);
  });

  it("keeps its row where a trigger wants its changes and not its coming", async () => {
    const given = withOver({ events: ["Modified"] });
    const first = await opened(given);
    first.subscription.change(at("Modified", "a", 11, 1));
    await first.clock.advance(1_000);
    const it = await first.restart(given);
    await it.list(20, [at("Added", "a", 15, 9)]);
    await quiet(it.runner);
    expect(it.runner.told).toEqual(["Modified a@15"]);
  });

  it("keeps its row where the handler is given the object before", async () => {
    const it = await opened({ ...options, usesOldObject: true });
    it.subscription.change(at("Added", "a", 11, 1));
    it.subscription.change(at("Modified", "a", 12, 9));
    await quiet(it.runner);
    const [told] = it.runner.deliveries;
    expect(told?.oldBody?.toString()).toBe(at("Added", "a", 11, 1).body.toString());
  });

  it("leaves no row where its condition has no value, live or in a list, and the error is told of", async () => {
    const it = await opened();
    it.subscription.change(change("Added", "a", 11, { spec: {} }));
    await it.list(20, [change("Added", "a", 11, { spec: {} }), change("Added", "b", 12, { spec: {} })]);
    await it.clock.advance(1_000);
    expect([(await onRecord(it)).rows, it.runner.told]).toEqual([[], []]);
    expect(it.warnings.map(({ condition }) => condition)).toContain("large");
  });

  it("is no stranger any more once it was told of: where it stands is on record from then on", async () => {
    const it = await opened();
    it.subscription.change(at("Added", "a", 11, 9));
    await quiet(it.runner);
    it.subscription.change(at("Modified", "a", 12, 1));
    await it.clock.advance(6_000);
    expect((await onRecord(it)).rows).toEqual(["team-a/a@12"]);
  });
});
