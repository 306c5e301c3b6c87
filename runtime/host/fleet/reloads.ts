import { type Clock, pause } from "../../base/clock.ts";
import { untilReached } from "../../migrate/until-reached.ts";
import type { Logger } from "../../observe/log.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Shardings } from "./shardings.ts";

/** How often it is looked whether it is agreed by now how a function is spread, in milliseconds. */
const agreePollMs = 500;
/** After a reading that failed, in milliseconds: no other change may come that would begin the next. */
const againMs = 5_000;

/** Something that takes up what the catalogue has now. */
interface CatalogueReader {
  reload(): Promise<void>;
}

interface ReloadsParts {
  readonly catalogue: Pick<Catalogue, "read" | "unsettled">;
  readonly spreads: Pick<Shardings, "read" | "size">;
  /** The runs of the slots that are here. */
  readonly runs: () => readonly CatalogueReader[];
  /** Whether a slot of this function is here. */
  readonly isHere: (name: string) => boolean;
  /** Whether the slot that would say how this function is spread stands still: it is not waited for. */
  readonly isStuck: (name: string) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Reads a replica's functions, for all its slots, one reading after another. */
export class Reloads {
  private readonly parts: ReloadsParts;
  private last: Promise<void> = Promise.resolve();
  /** Of how many functions it was agreed how they are spread when the slots that are here were all read last. */
  private taken = 0;
  /** Why the last reading failed; empty where it did not. */
  private failure = "";
  /** When what a reading lacked is to be read again, by the monotonic clock; undefined where it lacked nothing. */
  private dueAt: number | undefined;

  constructor(parts: ReloadsParts) {
    this.parts = parts;
  }

  /** Whether all slots that are here know how each function is spread, as far as that can be known. */
  get isAgreed(): boolean {
    const { catalogue, spreads, isStuck } = this.parts;
    return catalogue.unsettled.every(isStuck) && spreads.size === this.taken;
  }

  /**
   * Reads the functions before the first slot is here.
   * @param waiting hears why an API server has to be waited for, and of its end
   * @throws the signal's reason, and what no waiting mends
   */
  first(signal: AbortSignal, waiting: (why: string | undefined) => void): Promise<void> {
    return this.next(async () => {
      await this.readAll(signal, waiting);
      this.taken = this.parts.spreads.size;
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
   * Looks, while nobody has agreed how a function is spread, whether its first slot has said so meanwhile. Reads again what a
   * reading lacked. Never rejects.
   */
  async agree(signal: AbortSignal): Promise<void> {
    const { clock, spreads, catalogue, isHere } = this.parts;
    while (!signal.aborted) {
      await pause(clock, agreePollMs, signal).catch(() => undefined);
      if (!signal.aborted && this.dueAt !== undefined && clock.monotonic() >= this.dueAt) await this.again(signal);
      if (signal.aborted || this.isAgreed) continue;
      if (catalogue.unsettled.length > 0) await spreads.read().catch(() => undefined);
      // It could not be said when the slot was read: the API server was away.
      const isOurs = catalogue.unsettled.some(isHere);
      if (spreads.size !== this.taken || isOurs)
        await this.settled(
          this.next(() => this.reloadRuns()),
          signal,
        );
      else await this.last;
    }
  }

  /** After those before it, whatever became of them. */
  private next(work: () => Promise<void>): Promise<void> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async readAll(signal: AbortSignal, waiting?: (why: string | undefined) => void): Promise<void> {
    const { clock, log, spreads, catalogue } = this.parts;
    await untilReached({ clock, log, waiting }, signal, () => spreads.read());
    await catalogue.read(signal);
  }

  /** Where one fails, it counts as not read, and is read again. */
  private async reloadRuns(): Promise<void> {
    const { size } = this.parts.spreads;
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
