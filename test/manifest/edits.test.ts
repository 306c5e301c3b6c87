import { expect, it } from "vitest";
import { editsOf } from "../../runtime/manifest/edits.ts";
import type { Delivery } from "../../runtime/manifest/function.ts";
import { recordsOf } from "../../runtime/manifest/trigger-record.ts";
import { manifest, trigger } from "../dispatch/fixture.ts";

const under = (over: Partial<ReturnType<typeof trigger>> = {}, mode: Delivery["mode"] = "All") =>
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

it("an edit of which nobody knows what waits gives no numbers", () => {
  const [line = ""] = editsOf(under({ apiVersion: "v2" }), under());
  expect(line).toContain("apiVersion changed from v1 to v2");
  expect(line).not.toMatch(/undefined|NaN|0 /);
});

it("a rename says that the trigger goes on", () => {
  expect(editsOf(under({ name: "shops" }), under())).toEqual([
    expect.stringContaining("trigger shops was called settings"),
  ]);
  expect(editsOf(under({ name: "shops", labelSelector: "x=1" }), under())).toEqual([]);
});
