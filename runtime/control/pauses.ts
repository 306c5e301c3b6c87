import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { Dispatcher } from "../engine/dispatcher.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import { passingCodes } from "../journal/nats/fault.ts";
import { isCanaryRecord } from "./aborted-canaries.ts";

interface PausesParts {
  readonly store: Pick<Checkpoint, "paused" | "setPaused" | "sync">;
  readonly dispatcher: Pick<Dispatcher, "hold" | "release">;
  readonly clock: Clock;
}

/** Milliseconds until a retry while NATS is unavailable. */
const againMs = 1_000;

/** Why a function is paused. `since`: epoch milliseconds; not known for a manifest. */
export type Pause =
  | { readonly by: "manifest" }
  | { readonly by: "set"; readonly set: string }
  | { readonly by: "command"; readonly since: number };

/**
 * The paused functions. A function is paused if its manifest says so, if the FunctionSet of its set does, or if a command did.
 * Commands are recorded in the store, so they survive a restart, and a function's removal and return.
 */
export class Pauses {
  private readonly parts: PausesParts;
  private readonly byManifest = new Set<string>();
  /** By function, the set that is paused. */
  private readonly bySet = new Map<string, string>();
  private readonly byCommand: Map<string, number>;
  /** Serialises the commands of one function. */
  private readonly last = new Map<string, Promise<unknown>>();
  private readonly closing = new AbortController();

  private constructor(parts: PausesParts, byCommand: ReadonlyMap<string, number>) {
    this.parts = parts;
    this.byCommand = new Map(byCommand);
    for (const name of byCommand.keys()) parts.dispatcher.hold(name, "command");
  }

  /** Opens the store's record and holds the functions that were paused before this process began. */
  static async open(parts: PausesParts): Promise<Pauses> {
    const paused = [...(await parts.store.paused())].filter(([name]) => !isCanaryRecord(name));
    return new Pauses(parts, new Map(paused));
  }

  /** Returns `undefined` if the function is not paused. */
  of(name: string): Pause | undefined {
    if (this.byManifest.has(name)) return { by: "manifest" };
    const set = this.bySet.get(name);
    if (set !== undefined) return { by: "set", set };
    const since = this.byCommand.get(name);
    return since === undefined ? undefined : { by: "command", since };
  }

  /** Applies the manifest of the running version. */
  heed(name: string, paused: boolean): void {
    this.byManifest[paused ? "add" : "delete"](name);
    this.parts.dispatcher[paused ? "hold" : "release"](name, "manifest");
  }

  /** Applies the FunctionSet of the function's set. `set`: the name of the set if it is paused. */
  heedSet(name: string, set: string | undefined): void {
    if (set === undefined) this.bySet.delete(name);
    else this.bySet.set(name, set);
    this.parts.dispatcher[set === undefined ? "release" : "hold"](name, "set");
  }

  /**
   * Pauses a function: no attempt begins from now on. Resolves once that is recorded, to whether no command had paused it before.
   */
  pause(name: string): Promise<boolean> {
    return this.next(name, async () => {
      if (this.byCommand.has(name)) return false;
      const { dispatcher, clock } = this.parts;
      const since = clock.now();
      dispatcher.hold(name, "command");
      this.byCommand.set(name, since);
      try {
        await this.record(name, since, undefined);
      } catch (error) {
        this.byCommand.delete(name);
        dispatcher.release(name, "command");
        throw error;
      }
      return true;
    });
  }

  /**
   * Revokes a pause command, so that waiting events are handled. Returns whether a command had paused it.
   * @throws WatchfireError WF_RUNTIME_PAUSED_BY_MANIFEST or WF_RUNTIME_PAUSED_BY_SET if the function stays paused
   */
  resume(name: string): Promise<boolean> {
    return this.next(name, async () => {
      const { dispatcher } = this.parts;
      const since = this.byCommand.get(name);
      const was = since !== undefined;
      if (was) {
        await this.record(name, undefined, since);
        this.byCommand.delete(name);
        dispatcher.release(name, "command");
      }
      const set = this.bySet.get(name);
      if (set !== undefined) {
        throw new WatchfireError("WF_RUNTIME_PAUSED_BY_SET", {
          what: `the FunctionSet ${set} says \`paused: true\``,
          actual: name,
        });
      }
      if (!this.byManifest.has(name)) return was;
      throw new WatchfireError("WF_RUNTIME_PAUSED_BY_MANIFEST", {
        what: "the function's manifest says `paused: true`",
        actual: name,
      });
    });
  }

  /** Stops waiting for NATS. Commands given meanwhile may or may not be recorded. */
  close(): void {
    this.closing.abort();
  }

  /**
   * Records a command. While NATS is unavailable, the command stays in effect and the write is retried.
   * @throws all other errors of the store; the earlier state is restored then, even if the store keeps what it could not write
   */
  private async record(name: string, since: number | undefined, before: number | undefined): Promise<void> {
    const { store, clock } = this.parts;
    for (;;) {
      try {
        await store.setPaused(name, since);
        return await store.sync();
      } catch (error) {
        if (!isAway(error)) {
          await store.setPaused(name, before).catch(() => undefined);
          throw error;
        }
      }
      await pause(clock, againMs, this.closing.signal);
    }
  }

  private next<T>(name: string, command: () => Promise<T>): Promise<T> {
    // Without a preceding command it begins immediately.
    const done = this.last.get(name)?.then(command) ?? command();
    const ended = done
      .catch(() => undefined)
      .then(() => {
        if (this.last.get(name) === ended) this.last.delete(name);
      });
    this.last.set(name, ended);
    return done;
  }
}

const isAway = (error: unknown): boolean => error instanceof WatchfireError && passingCodes.includes(error.code);
