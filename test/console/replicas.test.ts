import { expect, test } from "vitest";
import { ownersOf, replicasOf, unasked } from "../../runtime/console/replicas.ts";
import { servedConsole } from "./served.ts";

const slotOf = (slot: number, owner: string, ...functions: string[]) => {
  return { slot, owner, state: owner === "a" ? "running" : owner === "" ? "free" : "elsewhere", functions };
};

const fleet = {
  replica: "a",
  replicas: 3,
  slots: [
    slotOf(0, "b", "copy"),
    slotOf(1, "a", "greet"),
    slotOf(2, "c"),
    slotOf(3, "b", "copy", "label"),
    slotOf(4, "", "lost"),
  ],
};

test("a fleet's replicas are listed, this one first, and the others did not answer", () => {
  expect(replicasOf(fleet)).toEqual([
    { name: "a", slots: [1], functions: ["greet"], answers: true },
    { name: "b", slots: [0, 3], functions: ["copy", "label"], answers: false },
    { name: "c", slots: [2], functions: [], answers: false },
  ]);
  expect(replicasOf({ ...fleet, slots: [slotOf(0, "b")] })[0]).toEqual({
    name: "a",
    slots: [],
    functions: [],
    answers: true,
  });
  expect(ownersOf(fleet, "copy")).toEqual(["b"]);
  expect(ownersOf(fleet, "greet")).toEqual([]);
});

test("an answer names the replicas that are not part of it, and the slots that nobody has", () => {
  expect(unasked(fleet)).toMatch(/^b did not answer: .*; c did not answer: .*; slots 4 are with no replica$/);
  const silent = new Map([["c", "no answer within 5 s"]]);
  expect(unasked({ ...fleet, slots: fleet.slots.slice(0, 4) }, new Set(["a", "b"]), silent)).toBe(
    "c did not answer: no answer within 5 s",
  );
  expect(unasked({ ...fleet, slots: [slotOf(1, "a", "greet")] })).toBeUndefined();
  expect(unasked(undefined)).toBeUndefined();
});

test("pages of a fleet's replica say who did not answer, and who runs a function that is not here", async () => {
  const { ask, bearing } = await servedConsole({ fleet });
  const asked = async (path: string) => JSON.parse((await ask(`/api/${path}`, { headers: bearing })).body);
  expect((await asked("overview")).replicas).toHaveLength(3);
  expect((await asked("errors")).elsewhere).toMatch(/b did not answer: .*c did not answer/);
  expect((await asked("functions/copy")).error).toContain("another replica runs the function: b");
});
