import { expect, test } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { functionSources } from "../../runtime/host/function-sources.ts";
import type { Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("the functions of a namespace are read only once it is known which of its sets are paused", async () => {
  const known = Promise.withResolvers<void>();
  const subscribe = (_: unknown, by: Subscriber) => {
    by.list("initial", undefined).end(resourceVersion("1"));
    return { close: async () => undefined };
  };
  const log = { info: () => undefined, error: () => undefined, warn: () => undefined };
  const { all } = functionSources({
    options: { namespace: "home", account: "watchfire", deployed: true, data: "", clock: new VirtualClock(), log },
    components: {
      watches: { subscribe, status: () => [] },
      pausedSets: new Map([["home", { known: () => known.promise }]]),
    },
    changed: () => undefined,
  } as never);
  let isRead = false;
  const reading = all.read(new AbortController().signal).then(() => {
    isRead = true;
  });
  // Everything else that the read waits for is there by the next turn.
  await new Promise(setImmediate);
  expect(isRead).toBe(false);
  known.resolve();
  await reading;
});
