import { expect, test } from "vitest";
import { BodyRoom, LastBodies } from "../../runtime/engine/commit/deferred-rows.ts";

const mebibyte = 1024 * 1024;
const body = Buffer.alloc(mebibyte);

/** Number of bodies of a mebibyte that fit. */
const fill = (bodies: LastBodies): number => {
  let taken = 0;
  while (bodies.take(1, `n${taken}`, body, 0)) taken++;
  return taken;
};

test("the slots of a replica share 32 MiB of last bodies", () => {
  const room = new BodyRoom();
  const [one, other] = [new LastBodies(room), new LastBodies(room)];
  expect(fill(one)).toBe(31);
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
  expect(one.take(1, "late", body, 0)).toBe(false);
  expect(fill(other)).toBe(31);
  expect(fill(new LastBodies(room))).toBe(0);
});
