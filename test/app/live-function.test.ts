import { expect, test } from "vitest";
import { LiveFunction, type LiveFunctionParts } from "../../runtime/app/live-function.ts";
import type { Bundle } from "../../runtime/bundle/bundle.ts";
import { systemClock } from "../../runtime/clock.ts";
import { manifestOf, ownObjects } from "../access/api-server.ts";
import { until } from "../tools/until.ts";

const bundle = (hash: string) => ({ script: "", sourceMap: "", inputs: [], usesOldObject: false, hash }) as Bundle;

const offer = (hash: string) => ({
  manifest: manifestOf({ triggers: [] }),
  origin: { type: "folder", manifest: "f.yaml" } as const,
  bundle: async () => bundle(hash),
});

/** A sandbox that notes what it runs, and a dispatcher in which attempts run until they are told to end. */
function fixture() {
  const loaded: string[] = [];
  const swaps: PromiseWithResolvers<void>[] = [];
  const replace = async (_: unknown, __: unknown, swap: () => Promise<void>) => {
    const ended = Promise.withResolvers<void>();
    swaps.push(ended);
    await ended.promise;
    await swap();
  };
  const parts = {
    dispatcher: { function: async () => ({ replace }), remove: async () => {} },
    sandbox: { load: async (_: unknown, { hash }: Bundle) => void loaded.push(hash), unload: async () => {} },
    redactor: { learn: () => {}, forget: () => {} },
    metrics: { user: { forget: () => {} } },
    manifests: new Map(),
    grants: undefined,
    own: ownObjects,
    namespace: "default",
    clock: systemClock,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  } as unknown as LiveFunctionParts;
  return { live: new LiveFunction(offer("a"), parts), loaded, swaps };
}

test("code that is taken back while it waits for the old code's attempts does not run on", async () => {
  const { live, loaded, swaps } = fixture();
  await live.start("start");
  const changed = live.update(offer("b"));
  await until("the change waits", 5_000, async () => swaps.length === 1);
  const restored = live.update(offer("a"));
  swaps[0]?.resolve();
  await changed;
  const ended = until("it waits again", 5_000, async () => swaps.length === 2).then(() => swaps[1]?.resolve());
  await Promise.race([restored, ended]);
  await restored;
  expect(loaded).toEqual(["a", "b", "a"]);
});
