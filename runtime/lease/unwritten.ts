import { WatchfireError } from "../base/errors.ts";

/** So many tries of one write may fail in silence: an API server that restarts answers again within them. */
const patience = 3;

/** A write to a Lease that is tried again for as long as the Lease is held. Whoever waits for it would else wait in silence. */
export class Unwritten {
  private readonly what: string;
  private readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  private failures = 0;
  private fault: WatchfireError | undefined;

  /** @param what the Lease, in words */
  constructor(what: string, log: Unwritten["log"]) {
    this.what = what;
    this.log = log;
  }

  /** Why it is not written, from the third try in a row that failed. */
  get trouble(): WatchfireError | undefined {
    return this.fault;
  }

  /** A try failed. */
  failed(why: string): void {
    if (++this.failures < patience) return;
    const fault = new WatchfireError("WF_LEASE_UNWRITTEN", {
      what: `${this.what} was tried ${patience} times: ${why}`,
    });
    if (fault.message !== this.fault?.message) this.log.warn({ error: fault.message }, "lease not written");
    this.fault = fault;
  }

  /** It was written. */
  written(): void {
    this.failures = 0;
    if (this.fault) this.log.info({ lease: this.what }, "lease written again");
    this.fault = undefined;
  }
}
