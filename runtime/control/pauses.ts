import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { Dispatcher } from "../engine/dispatcher.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import { passingCodes } from "../journal/nats/fault.ts";

interface PausesParts {
  readonly store: Pick<Checkpoint, "paused" | "setPaused" | "sync">;
  readonly dispatcher: Pick<Dispatcher, "hold" | "release">;
  readonly clock: Clock;
}

/** How long until NATS that was away is tried again, in milliseconds. */
const againMs = 1_000;

/** Why a function is paused. `since`: epoch milliseconds; its manifest says no time. */
export type Pause = { readonly by: "manifest" } | { readonly by: "command"; readonly since: number };

/**
 * Which functions are paused. Their manifests say so, or a command did. Either is enough. What a command said is in the
 * store: it outlives the process, the function's removal and its return.
 */
export class Pauses {
  private readonly parts: PausesParts;
  private readonly byManifest = new Set<string>();
  private readonly byCommand: Map<string, number>;
  /** Of a function one command after the other. */
  private readonly last = new Map<string, Promise<unknown>>();
  private readonly closing = new AbortController();

  private constructor(parts: PausesParts, byCommand: ReadonlyMap<string, number>) {
    this.parts = parts;
    this.byCommand = new Map(byCommand);
    for (const name of byCommand.keys()) parts.dispatcher.hold(name, "command");
  }

  /** Holds those that were paused before this process began. */
  static async open(parts: PausesParts): Promise<Pauses> {
    return new Pauses(parts, await parts.store.paused());
  }

  /** Undefined of one that is not paused. */
  of(name: string): Pause | undefined {
    if (this.byManifest.has(name)) return { by: "manifest" };
    const since = this.byCommand.get(name);
    return since === undefined ? undefined : { by: "command", since };
  }

  /** What the manifest of the code that runs says. */
  heed(name: string, paused: boolean): void {
    this.byManifest[paused ? "add" : "delete"](name);
    this.parts.dispatcher[paused ? "hold" : "release"](name, "manifest");
  }

  /** No attempt begins from now on; resolves when that is on record. Gives whether it was not paused by a command before. */
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
   * Takes back what a command said; what waits is handled from then on. Gives whether a command had paused it.
   * @throws WatchfireError WF_RUNTIME_PAUSED_BY_MANIFEST where the function stays paused
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
      if (!this.byManifest.has(name)) return was;
      throw new WatchfireError("WF_RUNTIME_PAUSED_BY_MANIFEST", {
        what: "the function's manifest says `paused: true`",
        actual: name,
      });
    });
  }

  /** Waits no longer for NATS that is away. What was said meanwhile may be on record or not. */
  close(): void {
    this.closing.abort();
  }

  /**
   * While NATS is away, what was said stands, and waits to be written.
   * @throws what else the store throws; it is as it was then, also where the store keeps what it could not write
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
    // The first one begins at once.
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
