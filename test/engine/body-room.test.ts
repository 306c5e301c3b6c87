import { expect, test } from "vitest";
import { BodyRoom, LastBodies } from "../../runtime/engine/commit/deferred-rows.ts";

const mebibyte = 1024 * 1024;

/** Number of bodies of a mebibyte, each of another object, that fit. */
const fill = (bodies: LastBodies, name = "n"): number => {
  let taken = 0;
  while (bodies.take(1, `${name}${taken}`, Buffer.alloc(mebibyte), 0)) taken++;
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
  expect(fill(bodies, "other")).toBe(0);
  bodies.forget(100, "shared");
  expect(bodies.take(1, "other", Buffer.alloc(mebibyte), 0)).toBe(true);
});

test("a body without room leaves none behind that would pass for the newest", () => {
  const bodies = new LastBodies();
  bodies.take(1, "small", Buffer.from("old"), 0);
  fill(bodies);
  expect(bodies.take(1, "small", Buffer.alloc(2 * mebibyte), 0)).toBe(false);
  expect(bodies.get(1, "small")).toBeUndefined();
});

test("a newer large body takes the room of the one that it replaces", () => {
  const bodies = new LastBodies();
  expect(fill(bodies)).toBe(32);
  const newer = Buffer.alloc(mebibyte, "b");
  expect(bodies.take(1, "n0", newer, 0)).toBe(true);
  expect(bodies.get(1, "n0")?.bytes).toBe(newer);
  expect(bodies.take(1, "more", Buffer.alloc(mebibyte), 0)).toBe(false);
});

test("views take turns, so that one with large bodies keeps no other waiting", () => {
  const bodies = new LastBodies();
  for (let n = 0; n < 3; n++) bodies.take(1, `large${n}`, Buffer.alloc(mebibyte), 0);
  bodies.take(2, "small", Buffer.from("s"), 0);
  const released = [bodies.release(1), bodies.release(1)].flat().map(({ key }) => key);
  expect(released).toContain("small");
});

test("a large body that is held never changes, whatever follows it", () => {
  const bodies = new LastBodies();
  const large = Buffer.alloc(mebibyte, "a");
  bodies.take(1, "n", large, 0);
  bodies.take(1, "n", Buffer.from("b"), 0);
  expect(large.equals(Buffer.alloc(mebibyte, "a"))).toBe(true);
  expect(bodies.get(1, "n")?.bytes.toString()).toBe("b");
});
