import { InvalidError } from "../errors.ts";
import type { Operation, Operations } from "../operations.ts";

type StateOperation = Extract<Operation, `state.${string}`>;

export const isStateOperation = (operation: Operation): operation is StateOperation => operation.startsWith("state.");

/** The entries of `ctx.state` in a unit test. Has no limit. */
export class MemoryState {
  private readonly before: ReadonlyMap<string, unknown>;
  private readonly entries: Map<string, unknown>;

  constructor(entries: Readonly<Record<string, unknown>> = {}) {
    this.before = new Map(Object.entries(structuredClone(entries)));
    this.entries = new Map(this.before);
  }

  /** The entries after the run. `kept`: false if the handler failed, which takes its writes back. */
  after(kept: boolean): Record<string, unknown> {
    return structuredClone(Object.fromEntries(kept ? this.entries : this.before));
  }

  /** Executes an operation of `ctx.state`. */
  call<O extends StateOperation>(operation: O, args: Operations[O]["args"]): Operations[O]["result"] {
    const { key = "", value, prefix = "" } = args as { key?: string; value?: unknown; prefix?: string };
    const answers: { [Name in StateOperation]: () => Operations[Name]["result"] } = {
      "state.get": () => (this.entries.has(key) ? { value: structuredClone(this.entries.get(key)) } : {}),
      "state.keys": () => [...this.entries.keys()].filter((each) => each.startsWith(prefix)).sort(),
      "state.set": () => {
        if (value === undefined)
          throw new InvalidError("state.set: value is missing; ctx.state.delete removes an entry");
        this.entries.set(key, structuredClone(value));
        return null;
      },
      "state.delete": () => {
        this.entries.delete(key);
        return null;
      },
    };
    return answers[operation]() as Operations[O]["result"];
  }
}
