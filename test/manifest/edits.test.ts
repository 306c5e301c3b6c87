import { expect, it } from "vitest";
import { editsOf, renameOf } from "../../runtime/manifest/edits.ts";
import { trigger } from "../dispatch/fixture.ts";

const under = (over: Partial<ReturnType<typeof trigger>> = {}, mode = "All") => ({ ...trigger(over), mode });

it("a manifest that is as it was says nothing", () => {
  expect(editsOf("settings", under(), under(), { events: 2, keys: 3 })).toEqual([]);
});

it("an edit says in one line for each field what it does to what waits", () => {
  const key = { type: "expression", expression: "object.spec.of" } as const;
  expect(editsOf("pods", under({}, "Reconcile"), under({ key }, "Reconcile"), { events: 0, keys: 3 })).toEqual([
    "trigger pods: key changed: 3 waiting keys run, and the next change of an object wakes its keys of both rules",
  ]);
  const [mode, ...others] = editsOf("settings", under({}, "Reconcile"), under(), { events: 0, keys: 1 });
  expect([mode, others]).toEqual([
    "mode changed from Reconcile to All: 1 waiting key is told as events of the objects that woke them",
    [],
  ]);
  expect(editsOf("settings", under(), under({ labelSelector: "x=1" }))).toEqual([
    expect.stringContaining("labelSelector changed from none to x=1"),
  ]);
});

it("an edit of which nobody knows what waits gives no numbers", () => {
  const [line = ""] = editsOf("settings", under(), under({ apiVersion: "v2" }));
  expect(line).toContain("apiVersion changed from v1 to v2");
  expect(line).not.toMatch(/undefined|NaN|0 /);
});

it("a rename says that the trigger goes on", () => {
  expect(renameOf("settings", "shops")).toContain("trigger shops was called settings");
});
