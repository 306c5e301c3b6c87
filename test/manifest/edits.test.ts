import { expect, it } from "vitest";
import { editsOf } from "../../runtime/manifest/edits.ts";
import type { DeliverySettings } from "../../runtime/manifest/function.ts";
import { recordsOf, renamesOf } from "../../runtime/manifest/trigger-record.ts";
import { manifest, trigger } from "../engine/fixture.ts";

const under = (over: Partial<ReturnType<typeof trigger>> = {}, mode: DeliverySettings["mode"] = "All") =>
  recordsOf(manifest({ mode }, [trigger(over)]));

it("a manifest that is as it was says nothing", () => {
  expect(editsOf(under(), under(), { events: 2, keys: 3 })).toEqual([]);
});

it("an edit says in one line for each field what it does to what waits", () => {
  const key = { type: "expression", expression: "object.spec.of" } as const;
  expect(editsOf(under({ key }, "Reconcile"), under({}, "Reconcile"), { events: 0, keys: 3 })).toEqual([
    "trigger settings: key changed: 3 waiting keys run, and the next change of an object wakes its keys of both rules",
  ]);
  const [mode, ...others] = editsOf(under(), under({}, "Reconcile"), { events: 0, keys: 1 });
  expect([mode, others]).toEqual([
    "mode changed from Reconcile to All: 1 waiting key is told as events of the objects that woke them",
    [],
  ]);
  expect(editsOf(under({ labelSelector: "x=1" }), under())).toEqual([
    expect.stringContaining("labelSelector changed from none to x=1"),
  ]);
});

it("an edit to less says that what is known is cut to it, and not that it is left out", () => {
  for (const field of ["object", "lastBody"] as const) {
    const [less, more] = [under({ [field]: "Metadata" }), under({ [field]: "Full" })];
    expect(editsOf(less, more)).toEqual([expect.stringContaining("the metadata is used")]);
    expect(editsOf(more, less)).toEqual([expect.stringContaining("are not used")]);
  }
});

it("keys that come or go with the mode are told of with the mode alone", () => {
  const keyed = under({ key: { type: "expression", expression: "object.spec.of" } }, "Reconcile");
  expect(editsOf(under(), keyed)).toEqual([expect.stringMatching(/^mode changed/)]);
  expect(editsOf(keyed, under())).toEqual([expect.stringMatching(/^mode changed/)]);
});

it("a trigger that is gone is named, and one that comes back is no rename of another", () => {
  const [watch, other] = [under({ labelSelector: "x=1" }), under({ name: "other", labelSelector: "x=1" })];
  const gone = "trigger other of ConfigMap is gone: what waits for it is kept for seven days";
  expect(editsOf(under(), [...under(), ...other])).toEqual([gone]);
  expect(editsOf(watch, other, undefined, under())).toEqual([
    expect.stringContaining("trigger settings: labelSelector changed from none to x=1"),
    gone,
  ]);
});

it("an edit of which nobody knows what waits gives no numbers", () => {
  const [line = ""] = editsOf(under({ apiVersion: "v2" }), under());
  expect(line).toContain("apiVersion changed from v1 to v2");
  expect(line).not.toMatch(/undefined|NaN|0 /);
});

it("a rename says that the trigger goes on", () => {
  expect(editsOf(under({ name: "shops" }), under())).toEqual([
    expect.stringContaining("trigger shops was called settings"),
  ]);
  expect(editsOf(under({ name: "shops", labelSelector: "x=1" }), under())).toEqual([
    expect.stringContaining("trigger settings of ConfigMap is gone"),
  ]);
});

/** Names of triggers after an edit, each with its previous name if that differs. */
function renamesBetween(before: Record<string, typeof made>, after: Record<string, typeof made>) {
  const of = (triggers: Record<string, typeof made>) =>
    recordsOf(
      manifest(
        {},
        Object.entries(triggers).map(([name, each]) => ({ ...each, name })),
      ),
    );
  return [...renamesOf(of(after), of(before))].map(([{ name }, was]) => [name, was.name]).sort();
}

const [made, changed] = [trigger({ events: ["Added"] }), trigger({ events: ["Modified"] })];

it("of triggers with one watch that are renamed at once, each goes on as the one that is like it", () => {
  expect(renamesBetween({ made, changed }, { "on-change": changed, "on-make": made })).toEqual([
    ["on-change", "changed"],
    ["on-make", "made"],
  ]);
});

it("two that change names with each other go on, whatever they watch, if one has all its fields", () => {
  const swapped = [
    ["one", "other"],
    ["other", "one"],
  ];
  const labelled = trigger({ labelSelector: "x=1" });
  const edited = trigger({ labelSelector: "x=1", events: ["Added"] });
  expect(renamesBetween({ one: made, other: changed }, { one: changed, other: made })).toEqual(swapped);
  expect(renamesBetween({ one: made, other: labelled }, { one: edited, other: made })).toEqual(swapped);
});

it("two that change selectors with each other keep their names", () => {
  const [one, other] = [trigger({ apiVersion: "v1", labelSelector: "x=1" }), trigger({ apiVersion: "v2" })];
  const after = { one: { ...one, labelSelector: "" }, other: { ...other, labelSelector: "x=1" } };
  expect(renamesBetween({ one, other }, after)).toEqual([]);
});
