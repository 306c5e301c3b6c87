import { describe, expect, it } from "vitest";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { change, DispatchFixture, manifest, quiet, trigger } from "./fixture.ts";

type Kept = Partial<Trigger>;

const onFields = (kept: Kept, ...fields: string[]) =>
  manifest({ concurrency: 1 }, [trigger({ ...kept, changedFields: fields.map((field) => ["spec", field]) })]);

describe("changed fields that are edited", () => {
  const objects = [
    change("Added", "swapped", 5, { spec: { a: "1", b: "2" } }),
    change("Added", "robbed", 6, { spec: { b: "x" } }),
    change("Added", "other", 7, { spec: { a: "1", b: "2" } }),
  ];
  const later = [
    change("Modified", "swapped", 11, { spec: { a: "2", b: "1" } }),
    change("Modified", "robbed", 12, { spec: {} }),
    change("Modified", "other", 13, { spec: { a: "2", b: "2" } }),
  ];

  async function edited(kept: Kept, before: string[], after: string[]): Promise<string[]> {
    const first = await DispatchFixture.open({ manifest: onFields(kept, ...before) });
    await first.list(9, objects, "initial");
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: onFields(kept, ...after) });
    for (const each of later) second.subscription.change(each);
    await quiet(second.runner);
    return second.runner.told.slice(objects.length);
  }

  it("tell of an object when one of the new fields changed, and only then", async () => {
    expect(await edited({}, ["a"], ["b"])).toEqual(["Modified swapped@11", "Modified robbed@12"]);
  });

  it("tell of two that swapped their values, though the fields are the same in another order", async () => {
    expect(await edited({}, ["a", "b"], ["b", "a"])).toEqual([
      "Modified swapped@11",
      "Modified robbed@12",
      "Modified other@13",
    ]);
  });

  it.each<[string, Kept]>([
    ["with metadata alone", { lastBody: "Metadata" }],
    ["of triggers that need none", { events: ["Added", "Modified"] }],
  ])("tell of each object once, where no body is kept that could say whether they changed, %s", async (_, kept) => {
    expect(await edited(kept, ["a"], ["b"])).toEqual([
      "Modified swapped@11",
      "Modified robbed@12",
      "Modified other@13",
    ]);
  });
});

it("a condition that compares keeps nothing from being told while it is not known what was told last", async () => {
  const comparing = manifest({}, [
    trigger({
      matchConditions: [
        { name: "changed", expression: "oldObject == null || object.spec != oldObject.spec" },
        { name: "wanted", expression: "object.spec.v < 9" },
      ],
    }),
  ]);
  const at = (name: string, rv: number, v: number) => change(rv < 9 ? "Added" : "Modified", name, rv, { spec: { v } });
  const first = await DispatchFixture.open({ manifest: comparing });
  await first.list(9, [at("back", 4, 4), at("unwanted", 5, 4), at("same", 6, 4)], "initial");
  await quiet(first.runner);
  await first.clock.advance(1_000);
  first.runner.answer = () => undefined;
  first.subscription.change(at("back", 11, 6));
  first.subscription.change(at("unwanted", 12, 6));
  await quiet(first.runner);
  const told = first.runner.deliveries.length;
  const second = await first.restart({ manifest: comparing });
  await second.list(20, [at("back", 14, 4), at("unwanted", 15, 9), at("same", 16, 4)]);
  await quiet(second.runner);
  expect(second.runner.told.slice(told)).toEqual(["Modified back@14"]);
});
