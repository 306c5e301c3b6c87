import { expect, it } from "vitest";
import { editsOf, type WaitingWork } from "../../runtime/manifest/edits.ts";
import type { DeliverySettings } from "../../runtime/manifest/function.ts";
import { recordsOf, renamesOf } from "../../runtime/manifest/trigger-record.ts";
import { manifest, trigger } from "../engine/fixture.ts";

const under = (over: Partial<ReturnType<typeof trigger>> = {}, mode: DeliverySettings["mode"] = "All") =>
  recordsOf(manifest({ mode }, [trigger(over)]));

const waits = (waiting: Partial<WaitingWork>) => () => ({ events: 0, keys: 0, woken: 0, ...waiting });

it("a manifest that is as it was says nothing", () => {
  expect(editsOf(under(), under(), [], waits({ events: 2, keys: 3 }))).toEqual([]);
});

it("an edit says in one line for each field what it does to what waits", () => {
  const key = { type: "expression", expression: "object.spec.of" } as const;
  const keyed = [under({ key }, "Reconcile"), under({}, "Reconcile")] as const;
  expect(editsOf(...keyed, [], waits({ woken: 3 }))).toEqual([
    "trigger settings: key changed: 3 waiting keys run, and the next change of an object wakes its keys of both rules",
  ]);
  const [mode, ...others] = editsOf(under(), under({}, "Reconcile"), [], waits({ keys: 1 }));
  expect([mode, others]).toEqual([
    "mode changed from Reconcile to All: 1 waiting key is delivered as events of the objects that woke them",
    [],
  ]);
  expect(editsOf(under({ labelSelector: "x=1" }), under())).toEqual([
    expect.stringContaining("labelSelector changed from none to x=1"),
  ]);
});

it("a line that names a trigger counts what waits for that trigger, and the mode's what waits for all", () => {
  const both = (apiVersion: string, mode: DeliverySettings["mode"]) => [
    ...under({ apiVersion }, mode),
    ...under({ apiVersion, name: "other", kind: "Secret" }, mode),
  ];
  const own: Record<string, WaitingWork> = {
    settings: { events: 0, keys: 3, woken: 2 },
    other: { events: 1, keys: 0, woken: 1 },
  };
  const waitingOf = ({ name }: { name: string }) => own[name] as WaitingWork;
  expect(editsOf(both("v2", "Reconcile"), both("v1", "Reconcile"), [], waitingOf)).toEqual([
    expect.stringMatching(/^trigger settings: .* 3 waiting keys are read again from the API server$/),
    expect.stringMatching(/^trigger other: .* 1 event on disk is read again from the API server$/),
  ]);
  expect(editsOf(both("v1", "Reconcile"), both("v1", "All"), [], waitingOf)).toEqual([
    "mode changed from All to Reconcile: 1 event on disk wakes its key",
  ]);
  const cut = editsOf(under({ object: "Metadata" }), under(), [], waits({ events: 2, keys: 1 }));
  expect(cut).toEqual([
    expect.stringMatching(/, 1 waiting key and 2 events on disk are delivered with metadata only$/),
  ]);
});

it("an edit to less says that what is known is cut to it, and not that it is left out", () => {
  for (const field of ["object", "lastBody"] as const) {
    const [less, more] = [under({ [field]: "Metadata" }), under({ [field]: "Full" })];
    expect(editsOf(less, more)).toEqual([expect.stringContaining("only the metadata of stored bodies")]);
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
  const waiting = { events: 7, keys: 1, woken: 1 };
  expect(editsOf(under(), [...under(), ...other], [], () => waiting)).toEqual([
    gone.replace("for it", "for it (1 key, 7 events on disk)"),
  ]);
  expect(editsOf(watch, other, under())).toEqual([
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
