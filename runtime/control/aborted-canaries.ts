import type { Checkpoint } from "../journal/checkpoint.ts";

/** Begins the records of canaries among those of paused functions: no function's name contains a space. */
const prefix = "canary ";

const recordOf = (functionName: string, id = ""): string => `${prefix}${functionName} ${id}`;

/** Whether a record among those of paused functions is a canary's. */
export const isCanaryRecord = (name: string): boolean => name.startsWith(prefix);

/**
 * The canaries that the runtime has aborted. They are kept in the store, over a restart, until the set has another canary, in the form
 * of paused functions: so that each kind of store has them, and an older version ignores them.
 */
export class AbortedCanaries {
  private readonly store: Pick<Checkpoint, "paused" | "setPaused" | "sync">;

  constructor(store: AbortedCanaries["store"]) {
    this.store = store;
  }

  /** Returns when a canary was aborted, in epoch milliseconds; `undefined` if it was not. */
  async at(functionName: string, id: string): Promise<number | undefined> {
    return (await this.store.paused()).get(recordOf(functionName, id));
  }

  /** Durable once it has resolved. */
  async add(functionName: string, id: string, at: number): Promise<void> {
    await this.store.setPaused(recordOf(functionName, id), at);
    await this.store.sync();
  }

  /** Forgets the function's canaries, except the one with this id. */
  async forget(functionName: string, id?: string): Promise<void> {
    for (const name of (await this.store.paused()).keys()) {
      const isOther = name.startsWith(recordOf(functionName)) && name !== recordOf(functionName, id);
      if (isOther) await this.store.setPaused(name, undefined);
    }
  }
}
