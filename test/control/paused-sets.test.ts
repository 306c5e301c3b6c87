import { expect, test } from "vitest";
import { PausedSets } from "../../runtime/control/paused-sets.ts";
import type { ListReason, Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import type { Informers } from "../../runtime/informer/informers.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { VirtualClock } from "../virtual-clock.ts";

/** The change that a FunctionSet's informer reports. */
const changeOf = (name: string, spec: unknown, type: Change["type"] = "Modified"): Change =>
  ({ type, meta: { name }, body: Buffer.from(JSON.stringify({ metadata: { name, generation: 3 }, spec })) }) as Change;

async function followed() {
  let subscriber: Subscriber | undefined;
  let changes = 0;
  const watches = {
    subscribe: (_: unknown, given: Subscriber) => {
      subscriber = given;
      return { close: async () => undefined };
    },
    status: () => [],
  } as unknown as Pick<Informers, "subscribe" | "status">;
  const sets = new PausedSets({
    watches,
    namespace: "team-a",
    labelSelector: "",
    clock: new VirtualClock(),
    log: { info: () => undefined },
    changed: () => changes++,
  });
  const known = sets.known(new AbortController().signal);
  const lists = (changes: readonly Change[], reason: ListReason = "relist") => {
    const receiver = subscriber?.list(reason, undefined);
    for (const each of changes) receiver?.item(each);
    return receiver?.end("9" as never);
  };
  lists([changeOf("shop", { paused: true }), changeOf("other", {})], "initial");
  await known;
  return { sets, lists, change: (change: Change) => subscriber?.change(change), changes: () => changes };
}

test("an object that is changed, deleted, or cannot be read pauses its set no longer", async () => {
  const { sets, change, changes } = await followed();
  expect([sets.of("shop"), sets.of("other"), sets.of("unknown")]).toEqual([
    { paused: true, generation: 3 },
    { paused: false, generation: 3 },
    undefined,
  ]);
  change(changeOf("other", { paused: true }));
  change(changeOf("shop", {}, "Deleted"));
  expect([sets.of("shop"), sets.of("other")?.paused, changes()]).toEqual([undefined, true, 3]);
  change(changeOf("other", { paused: "yes" }));
  expect([sets.of("other")?.paused, changes()]).toEqual([false, 4]);
  change(changeOf("other", { runtime: "watchfire" }));
  expect(changes()).toBe(4);
});

test("an empty list resumes no set until the server says it twice, unless the definition is gone", async () => {
  const { sets, lists } = await followed();
  expect([lists([]), sets.of("shop")?.paused]).toEqual(["held", true]);
  expect([lists([changeOf("shop", { paused: true })]), lists([]), sets.of("shop")?.paused]).toEqual([
    "counted",
    "held",
    true,
  ]);
  expect([lists([]), sets.of("shop")]).toEqual(["counted", undefined]);
  const gone = await followed();
  expect([gone.lists([], "crd-removed"), gone.sets.of("shop")]).toEqual(["counted", undefined]);
});

test("of more sets than a namespace may have, the rest pauses nothing and takes no memory", async () => {
  const { sets, change } = await followed();
  for (let index = 0; index < 2_000; index++) change(changeOf(`s${index}`, { paused: true }));
  expect([sets.of("s997")?.paused, sets.of("s998"), sets.of("shop")?.paused]).toEqual([true, undefined, true]);
});
