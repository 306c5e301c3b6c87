import { expect, test } from "vitest";
import { WatchRoom } from "../../runtime/host/watch-room.ts";
import { manifestOf } from "../access/api-server.ts";

const sources = (of: string, count: number) => new Set(Array.from({ length: count }, (_, at) => `${of}/${at}`));
const manifest = manifestOf({});

test("functions may name 800 different watches together; who names few always has them, and who shares them takes no more", () => {
  const room = new WatchRoom();
  const [a, b, c, d, e] = Array.from({ length: 5 }, () => ({}));
  for (const [holder, of] of [a, b, c, d].map((each, at) => [each as object, `n${at}`] as const)) {
    expect(room.objection(holder, sources(of, 200), manifest)).toBeUndefined();
    room.take(holder, sources(of, 200));
  }
  const refused = room.objection(e as object, sources("more", 9), manifest);
  expect(refused).toMatchObject({ code: "WF_RUNTIME_WATCHES" });
  expect(refused?.message).toContain("it names 9 watches, and all functions together would have 809, of 800");
  expect(room.objection(e as object, sources("more", 8), manifest)).toBeUndefined();
  expect(room.objection(e as object, sources("n0", 200), manifest)).toBeUndefined();
  room.take(e as object, sources("n0", 200));
  // A change of its names frees the watches of the previous ones.
  expect(room.objection(b as object, sources("other", 200), manifest)).toBeUndefined();
  room.leave(a as object);
  expect(room.objection(a as object, sources("more", 9), manifest)).toBeDefined();
  room.leave(e as object);
  expect(room.objection(a as object, sources("more", 200), manifest)).toBeUndefined();
});
