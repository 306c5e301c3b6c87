import { WatchfireError } from "../../base/errors.ts";
import type { Sharding } from "../../engine/state/sharding.ts";
import { LeaseWriteRetries } from "../../lease/elector.ts";
import type { LeaseApi } from "../../lease/lease-api.ts";
import { shardingsIn, shardingsNote } from "../../migrate/location.ts";

/** Timeout of one request, in milliseconds. */
const requestMs = 3_000;

/**
 * How functions are spread, as agreed by all replicas. Recorded on the runtime's Lease. The first proposal is final, because
 * checkpoints are placed accordingly.
 */
export class Shardings {
  private readonly api: LeaseApi;
  private readonly writing: LeaseWriteRetries;
  private known: ReadonlyMap<string, Sharding> = new Map();

  constructor(
    api: LeaseApi,
    log: { info(fields: object, message: string): void; warn(fields: object, message: string): void },
  ) {
    this.api = api;
    this.writing = new LeaseWriteRetries("how functions are spread, on the runtime's Lease,", log);
  }

  /** Why nothing can be recorded at present, if that is so. */
  get unwritten(): WatchfireError | undefined {
    return this.writing.trouble;
  }

  /** Returns a function's sharding. `undefined` if it is not agreed. */
  of(name: string): Sharding | undefined {
    return this.known.get(name);
  }

  /** All agreed shardings, by function. */
  get all(): ReadonlyMap<string, Sharding> {
    return this.known;
  }

  /** The number of agreed shardings. */
  get size(): number {
    return this.known.size;
  }

  /** Reads what was agreed meanwhile. */
  async read(): Promise<void> {
    this.take((await this.api.get(requestMs))?.annotations ?? {});
  }

  /** Records a sharding, unless one is recorded already. @throws if the Lease cannot be written */
  async propose(name: string, sharding: Sharding): Promise<void> {
    try {
      await this.agree(name, sharding);
      this.writing.written();
    } catch (error) {
      this.writing.failed(error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  private async agree(name: string, sharding: Sharding): Promise<void> {
    for (;;) {
      const lease = await this.api.get(requestMs);
      if (!lease) throw new WatchfireError("WF_LEASE_LOST", { what: "the runtime's Lease was deleted" });
      this.take(lease.annotations);
      if (this.known.has(name)) return;
      const annotations = shardingsNote(new Map([...this.known, [name, sharding]]));
      const written = await this.api.update(lease, { annotations }, requestMs);
      if (written !== "conflict") this.take(annotations);
    }
  }

  private take(annotations: Readonly<Record<string, string>>): void {
    this.known = shardingsIn(annotations);
  }
}
