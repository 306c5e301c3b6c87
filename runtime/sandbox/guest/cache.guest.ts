import type { Cache } from "../../../sdk/cache.ts";
import { askHost, type Run } from "./run.guest.ts";

/**
 * Implements `ctx.cache` by blocking calls to the parent, which answers from memory and alone decides what a function may read.
 */
export const createCache = (run: Run): Cache => {
  const cache = {
    get: (ref: object) => askHost(run, "cache.get", { ref }) ?? undefined,
    list: (query: object) => askHost(run, "cache.list", query),
    age: (kind: object) => askHost(run, "cache.age", kind),
  };
  // The caller states the type it expects, or the kind's own type applies. Nothing can check it at run time.
  return cache as Cache;
};
