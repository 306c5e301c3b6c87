import { expect, test } from "vitest";
import { event, expired, isFollowing, isInitial, isList, item, Scripted } from "./scripted.ts";

test("an apiserver that restarts with empty history costs one list: unchanged objects are silent, changed ones told once", async () => {
  const scripted = await Scripted.start();
  const { runtime, server } = scripted;
  const objects = Array.from({ length: 50 }, (_, index) => item(`n${index}`, 50 + index));
  const stream = await scripted.initial(100, objects);
  await runtime.hears("follower", 50);
  stream.lines(event("MODIFIED", item("n0", 101, 2)));
  await runtime.hears("follower", 51);
  scripted.newest = 151;
  // The server shuts down: streams end cleanly, and new requests are answered with a delay to wait.
  stream.end();
  for (const count of [1, 2, 3]) {
    (await scripted.following(count)).status(429, "TooManyRequests", {}, { "retry-after": "20" });
    await runtime.sees("it waits as long as it was told to", () => runtime.clock.cutShort(20_000, 20_001) > 0);
  }
  // The server is back, without its earlier history.
  (await scripted.following(4)).stream().lines(expired());
  const again = [item("n0", 101, 2), ...objects.slice(1, 49), item("n49", 150, 2), item("new", 151)];
  await scripted.backedOff();
  const back = await scripted.initial(200, again, 2);
  await runtime.hears("follower", 53);
  back.lines(event("MODIFIED", item("n1", 201, 3)));
  await runtime.hears("follower", "Modified n1=3");
  expect(runtime.told("follower").slice(50).toSorted()).toEqual([
    "Added new=1 synthetic (relist)",
    "Modified n0=2",
    "Modified n1=3",
    "Modified n49=2 synthetic (relist)",
  ]);
  expect([server.count(isInitial), server.count(isFollowing), server.count(isList)]).toEqual([2, 4, 0]);
});
