import { WatchfireError } from "../base/errors.ts";

/** Number of failed tries of one write that are not reported. An API server that restarts answers again within them. */
const patience = 3;

/** Tracks a write to a Lease that is retried as long as the Lease is held, so that repeated failures are reported. */
export class Unwritten {
  private readonly what: string;
  private readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  private failures = 0;
  private fault: WatchfireError | undefined;

  /** @param what describes the write, for messages */
  constructor(what: string, log: Unwritten["log"]) {
    this.what = what;
    this.log = log;
  }

  /** Why it is not written, from the third failed try in a row; else `undefined`. */
  get trouble(): WatchfireError | undefined {
    return this.fault;
  }

  /** Records a failed try. */
  failed(why: string): void {
    if (++this.failures < patience) return;
    const fault = new WatchfireError("WF_LEASE_UNWRITTEN", {
      what: `${this.what} was tried ${patience} times: ${why}`,
    });
    if (fault.message !== this.fault?.message) this.log.warn({ error: fault.message }, "lease not written");
    this.fault = fault;
  }

  /** Records a success. */
  written(): void {
    this.failures = 0;
    if (this.fault) this.log.info({ lease: this.what }, "lease written again");
    this.fault = undefined;
  }
}
