import { InvalidError } from "./errors.ts";
import type { Call } from "./operations.ts";
import { unstorable } from "./state-value.ts";

/**
 * Entries of the function's own, kept across events and restarts: what it has done already, or how far it has come. An attempt
 * reads the entries of attempts that have ended, and its own writes. These are stored together with the attempt's success; an
 * attempt that fails changes nothing. If attempts that run at the same time write one key, the last one to end wins.
 */
export interface State {
  /** Returns an entry; `undefined` if it does not exist. */
  get<T = unknown>(key: string): Promise<T | undefined>;
  /**
   * Sets an entry to a value that JSON can hold: a text, a finite number, true, false, null, an array or a plain object. Throws an
   * InvalidError (WF_STATE_VALUE) for any other, such as a BigInt, NaN, a Map or a Date. Throws an InvalidError (WF_STATE_FULL) if
   * all entries would then exceed `resources.state` of the manifest, by default 64Ki; each counts its key, its JSON and 32 bytes.
   * @param key 1 to 512 characters
   */
  set(key: string, value: unknown): Promise<void>;
  /** Removes an entry, if it exists. */
  delete(key: string): Promise<void>;
  /** Returns the keys that begin with `prefix`, sorted. Default: all keys. */
  keys(prefix?: string): Promise<string[]>;
}

/** Creates `ctx.state` on top of a function that carries calls. */
export const createState = (call: Call): State => ({
  get: async <T>(key: string) => (await call("state.get", { key })).value as T | undefined,
  set: async (key, value) => {
    const why = unstorable(value);
    if (why !== undefined) throw invalidValue(key, why);
    await call("state.set", { key, value });
  },
  delete: async (key) => {
    await call("state.delete", { key });
  },
  keys: (prefix) => call("state.keys", prefix === undefined ? {} : { prefix }),
});

const invalidValue = (key: string, why: string): InvalidError =>
  new InvalidError(`WF_STATE_VALUE: state.set ${JSON.stringify(key)}: ${why}`, { status: 422, reason: "Invalid" });
