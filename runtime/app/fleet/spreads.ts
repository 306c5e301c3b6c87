import { z } from "zod";
import { WatchfireError } from "../../errors.ts";
import type { LeaseApi } from "../../lease/lease-api.ts";
import { readSpread, type Spread, wordsOf } from "../positions/spread.ts";

/** On the runtime's Lease: how each function is spread that has more than one shard, or was asked to have. */
const spreadsKey = "watchfire.dev/shards";

/** One request, in milliseconds. */
const requestMs = 3_000;

const recordSchema = z.record(z.string(), z.string());

/**
 * How functions are spread, as all replicas have agreed. It is on the runtime's Lease, and whoever says it first is
 * right for good: positions lie where it says.
 */
export class Spreads {
  private readonly api: LeaseApi;
  private known: ReadonlyMap<string, Spread> = new Map();

  constructor(api: LeaseApi) {
    this.api = api;
  }

  /** Undefined where nothing is agreed. */
  of(name: string): Spread | undefined {
    return this.known.get(name);
  }

  /** Of how many functions it is agreed. */
  get size(): number {
    return this.known.size;
  }

  /** Reads what was agreed meanwhile. */
  async read(): Promise<void> {
    this.take((await this.api.get(requestMs))?.annotations[spreadsKey]);
  }

  /** Agrees on it, unless something else was agreed before. */
  async propose(name: string, spread: Spread): Promise<void> {
    for (;;) {
      const lease = await this.api.get(requestMs);
      if (!lease) throw new WatchfireError("WF_LEASE_LOST", { what: "the runtime's Lease was deleted" });
      this.take(lease.annotations[spreadsKey]);
      if (this.known.has(name)) return;
      const all = [...this.known, [name, spread] as const].map(([each, its]) => [each, wordsOf(its)] as const);
      const annotations = { [spreadsKey]: JSON.stringify(Object.fromEntries(all)) };
      const written = await this.api.update(lease, { annotations }, requestMs);
      if (written !== "conflict") this.take(annotations[spreadsKey]);
    }
  }

  private take(text = "{}"): void {
    const entries = Object.entries(recordSchema.parse(JSON.parse(text)));
    this.known = new Map(
      entries.flatMap(([name, words]) => {
        const spread = readSpread(words);
        return spread ? [[name, spread] as const] : [];
      }),
    );
  }
}
