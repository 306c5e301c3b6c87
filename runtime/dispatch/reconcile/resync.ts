import type { Clock, Random, Timer } from "../../clock.ts";

/** How often it is looked for keys whose time has come: so many times in each round, and within these bounds, in milliseconds. */
const looksPerRound = 600;
const lookMs = { least: 1_000, most: 60_000 };

export interface ResyncParts {
  readonly clock: Clock;
  readonly random: Random;
  /** A round, in milliseconds; undefined: none. Asked at each look. */
  readonly everyMs: () => number | undefined;
  readonly keys: () => Iterable<string>;
  readonly wake: (key: string) => void;
}

/**
 * Wakes each key once in a round. Its moment follows from its name and from wall time. So keys are spread over the
 * round, nothing is kept of it, and a restart does not begin it anew.
 */
export class Resync {
  private readonly parts: ResyncParts;
  private timer: Timer | undefined;
  private lookedAt: number;

  constructor(parts: ResyncParts) {
    this.parts = parts;
    this.lookedAt = parts.clock.now();
  }

  /** Looks from now on. Without a round it looks now and then whether there is one. */
  start(): void {
    const { clock, random, everyMs } = this.parts;
    const round = everyMs() ?? Number.POSITIVE_INFINITY;
    const delay = Math.min(lookMs.most, Math.max(lookMs.least, round / looksPerRound));
    this.timer = clock.after(delay * (1 + random() / 2), () => this.look(), { unref: true });
  }

  stop(): void {
    this.timer?.cancel();
  }

  private look(): void {
    const { clock, everyMs, keys, wake } = this.parts;
    const round = everyMs();
    const [from, to] = [this.lookedAt, clock.now()];
    this.lookedAt = to;
    // Wall time that was set back brings nothing; its moments come again later.
    if (round !== undefined && to > from) {
      for (const key of [...keys()]) if (isBetween(from / round, to / round, shareOf(key))) wake(key);
    }
    this.start();
  }
}

/** Whether a moment of a round, as a share of it, lies between two times, counted in rounds. */
const isBetween = (from: number, to: number, share: number): boolean =>
  Math.floor(to - share) > Math.floor(from - share);

/** A key's moment, as a share of the round: FNV-1a, and murmur3's last step, since names differ in their last characters. */
function shareOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
