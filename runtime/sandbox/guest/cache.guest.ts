import type { Cache } from "../../../sdk/cache.ts";
import { askHost, type Run } from "./run.guest.ts";

/** `ctx.cache` over the parent, which alone decides what a function sees: it answers from its memory while the isolate stands still. */
export const createCache = (run: Run): Cache => {
  const cache = {
    get: (ref: object) => askHost(run, "cache.get", { ref }) ?? undefined,
    list: (query: object) => askHost(run, "cache.list", query),
    age: (kind: object) => askHost(run, "cache.age", kind),
  };
  // A caller names the type it expects, or the kind's own is meant; nothing on the way could check it.
  return cache as Cache;
};
