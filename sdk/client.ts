import { ConflictError } from "./errors.ts";
import type { Kube, KubeObject, Ref } from "./kube.ts";
import type { Call } from "./operations.ts";

/** Attempts of `retryOnConflict`, and its delays: as client-go's `retry.DefaultRetry` (util/retry/util.go). */
const conflictAttempts = 5;
const conflictDelayMs = 10;
const conflictJitter = 0.1;

/** What the client needs of its surroundings. */
export interface ClientParts {
  readonly call: Call;
  /** Resolves after that many milliseconds. */
  readonly pause: (delayMs: number) => Promise<void>;
  /** In [0, 1), for jitter. Default `Math.random`. */
  readonly random?: () => number;
}

/** `ctx.kube` over a carrier of calls: the sandbox passes its own, the test harness another. */
export function createKube({ call, pause, random = Math.random }: ClientParts): Kube {
  // A caller names the type it expects; nothing on the way could check it.
  const as = <T>(result: Promise<unknown>) => result as Promise<T>;

  const kube: Kube = {
    get: <T>(ref: Ref) => as<T>(call("kube.get", { ref })),
    list: async (query) => {
      const list = await call("kube.list", query);
      // The API says it once for all; without it an item could not be given to update or apply.
      const { apiVersion, kind } = query;
      for (const [index, item] of list.items.entries()) {
        if (item.kind === undefined) list.items[index] = { apiVersion, kind, ...item };
      }
      return as(Promise.resolve(list));
    },
    create: <T extends KubeObject>(object: T) => as<T>(call("kube.create", { object })),
    update: <T extends KubeObject>(object: T) => as<T>(call("kube.update", { object })),
    patch: <T>(ref: Ref, patch: object, options?: object) => as<T>(call("kube.patch", { ...options, ref, patch })),
    apply: <T extends KubeObject>(object: T, options?: object) => as<T>(call("kube.apply", { ...options, object })),
    delete: (ref, options) => call("kube.delete", { ...options, ref }),
    updateStatus: <T extends KubeObject>(object: T) => as<T>(call("kube.updateStatus", { object })),
    patchStatus: <T>(ref: Ref, patch: object) => as<T>(call("kube.patchStatus", { ref, patch })),
    getScale: (ref) => call("kube.getScale", { ref }),
    setScale: (ref, replicas) => call("kube.setScale", { ref, replicas }),
    async retryOnConflict<T extends KubeObject>(
      ref: Ref,
      // biome-ignore lint/suspicious/noConfusingVoidType: as in the interface
      change: (object: T) => T | void | Promise<T | void>,
    ): Promise<T> {
      for (let attempt = 1; ; attempt++) {
        const object = await kube.get<T>(ref);
        const changed = (await change(object)) ?? object;
        try {
          return await kube.update(changed);
        } catch (error) {
          if (!(error instanceof ConflictError) || attempt === conflictAttempts) throw error;
          await pause(conflictDelayMs * 2 ** (attempt - 1) * (1 + conflictJitter * random()));
        }
      }
    },
  };
  return kube;
}
