import { expect, test } from "vitest";
import { BodyRoom, LastBodies } from "../../runtime/engine/commit/deferred-rows.ts";

const mebibyte = 1024 * 1024;

/** Number of different bodies of a mebibyte that fit. */
const fill = (bodies: LastBodies): number => {
  let taken = 0;
  while (bodies.take(1, `n${taken}`, Buffer.alloc(mebibyte), 0)) taken++;
  return taken;
};

test("the slots of a replica share 32 MiB of last bodies", () => {
  const room = new BodyRoom();
  const [one, other] = [new LastBodies(room), new LastBodies(room)];
  expect(fill(one)).toBe(32);
  expect(fill(other)).toBe(0);
  one.forget(1, "n0");
  expect(fill(other)).toBe(1);
});

test("a slot that leaves gives its room to others, once", () => {
  const room = new BodyRoom();
  const [one, other] = [new LastBodies(room), new LastBodies(room)];
  fill(one);
  one.close();
  one.close();
  one.forget(1, "n0");
  expect(one.take(1, "late", Buffer.alloc(mebibyte), 0)).toBe(false);
  expect(fill(other)).toBe(32);
  expect(fill(new LastBodies(room))).toBe(0);
});

test("a large body takes room once, however many triggers hold it, until the last of them lets go", () => {
  const bodies = new LastBodies();
  const shared = Buffer.alloc(mebibyte);
  for (let view = 1; view <= 100; view++) expect(bodies.take(view, "shared", shared, 0)).toBe(true);
  expect(fill(bodies)).toBe(31);
  for (let view = 1; view < 100; view++) bodies.forget(view, "shared");
  expect(fill(bodies)).toBe(0);
  bodies.forget(100, "shared");
  expect(bodies.take(1, "other", Buffer.alloc(mebibyte), 0)).toBe(true);
});

test("a large body that is held never changes, whatever follows it", () => {
  const bodies = new LastBodies();
  const large = Buffer.alloc(mebibyte, "a");
  bodies.take(1, "n", large, 0);
  bodies.take(1, "n", Buffer.from("b"), 0);
  expect(large.equals(Buffer.alloc(mebibyte, "a"))).toBe(true);
  expect(bodies.get(1, "n")?.bytes.toString()).toBe("b");
});
