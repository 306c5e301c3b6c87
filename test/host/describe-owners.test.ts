import { expect, test } from "vitest";
import { describeOwners } from "../../runtime/host/fleet-owner.ts";

test("slots are told of by their owners, each once, and without the number of its term", () => {
  const owners = ["a#1", "b#2", undefined, "a#1"];
  expect(describeOwners([0, 1, 2, 3], new Map(), owners)).toBe(
    "slots 0, 3 are with a; slot 1 is with b; slot 2 is with no replica yet",
  );
});

test("a slot that this replica has, and that does not run, is not another's", () => {
  expect(describeOwners([1], new Map([[1, "opens"]]), ["a#1", "b#2"])).toMatch(/^slot 1 is with this replica, which /);
});

test("of no slots nothing is told", () => {
  expect(describeOwners([], new Map())).toBeUndefined();
});
