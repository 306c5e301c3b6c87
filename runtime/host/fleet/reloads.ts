import { type Clock, pause } from "../../base/clock.ts";
import { untilReached } from "../../migrate/until-reached.ts";
import type { Logger } from "../../observe/log.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Shardings } from "./shardings.ts";

/** Interval, in milliseconds, at which it is checked whether a function's sharding has been agreed. */
const agreePollMs = 500;
/** Pause after a failed read, in milliseconds. No further change may occur that would trigger the next read. */
const againMs = 5_000;

/** Takes over what the catalogue has now. */
interface CatalogueReader {
  reload(): Promise<void>;
}

interface ReloadsParts {
  readonly catalogue: Pick<Catalogue, "read" | "unsettled">;
  readonly shardings: Pick<Shardings, "read" | "size">;
  /** The runs of the slots here. */
  readonly runs: () => readonly CatalogueReader[];
  /** True if a slot of the function is here. */
  readonly isHere: (name: string) => boolean;
  /** True if the slot that would propose the function's sharding is damaged, so that it is not waited for. */
  readonly isStuck: (name: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Reads a replica's functions for all its slots, one read at a time. */
export class Reloads {
  private readonly parts: ReloadsParts;
  private last: Promise<void> = Promise.resolve();
  /** Number of agreed shardings when all slots here were last reloaded. */
  private taken = 0;
  /** Why the last read failed. Empty if it did not. */
  private failure = "";
  /** When to read again what a read lacked, by the monotonic clock. `undefined` if nothing was lacking. */
  private dueAt: number | undefined;

  constructor(parts: ReloadsParts) {
    this.parts = parts;
  }

  /** True if all slots here know how each function is spread, as far as that can be known. */
  get isAgreed(): boolean {
    const { catalogue, shardings, isStuck } = this.parts;
    return catalogue.unsettled.every(isStuck) && shardings.size === this.taken;
  }

  /**
   * Reads the functions before the first slot is here.
   * @param waiting called with the reason for waiting for an API server, and with `undefined` when the wait ends
   * @throws the signal's reason; errors that waiting does not resolve
   */
  first(signal: AbortSignal, waiting: (why: string | undefined) => void): Promise<void> {
    return this.next(async () => {
      await this.readAll(signal, waiting);
      this.taken = this.parts.shardings.size;
    });
  }

  /** Reads the functions again, for all slots. Never rejects. */
  again(signal: AbortSignal): Promise<void> {
    const reading = this.next(async () => {
      this.dueAt = undefined;
      try {
        await this.readAll(signal);
        await this.reloadRuns();
      } catch (error) {
        this.dueAt = this.parts.clock.monotonic() + againMs;
        throw error;
      }
    });
    return this.settled(reading, signal);
  }

  /**
   * Checks periodically whether the first slot of a function has agreed on its sharding, until all have. Repeats incomplete
   * reads. Never rejects.
   */
  async agree(signal: AbortSignal): Promise<void> {
    const { clock, shardings, catalogue, isHere } = this.parts;
    while (!signal.aborted) {
      await pause(clock, agreePollMs, signal).catch(() => undefined);
      if (!signal.aborted && this.dueAt !== undefined && clock.monotonic() >= this.dueAt) await this.again(signal);
      if (signal.aborted || this.isAgreed) continue;
      if (catalogue.unsettled.length > 0) await shardings.read().catch(() => undefined);
      // The slot could not propose it when it was read, because the API server was away.
      const isOurs = catalogue.unsettled.some(isHere);
      if (shardings.size !== this.taken || isOurs)
        await this.settled(
          this.next(() => this.reloadRuns()),
          signal,
        );
      else await this.last;
    }
  }

  /** Runs `work` after earlier work, whether that succeeded or not. */
  private next(work: () => Promise<void>): Promise<void> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async readAll(signal: AbortSignal, waiting?: (why: string | undefined) => void): Promise<void> {
    const { clock, log, shardings, catalogue } = this.parts;
    await untilReached({ clock, log, waiting }, signal, () => shardings.read());
    await catalogue.read(signal);
  }

  /** Reloads all slots. If one fails, all count as not reloaded, and are tried again. */
  private async reloadRuns(): Promise<void> {
    const { size } = this.parts.shardings;
    await Promise.all(this.parts.runs().map((run) => run.reload()));
    this.taken = size;
  }

  private async settled(reading: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await reading;
      this.failure = "";
    } catch (error) {
      const words = String(error);
      if (!signal.aborted && words !== this.failure) this.parts.log.error({ error: words }, "reload failed");
      this.failure = words;
    }
  }
}
