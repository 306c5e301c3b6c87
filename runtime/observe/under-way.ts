import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";

/**
 * Milliseconds after which an answer is sent even if the work continues. The endpoints close a connection that is silent for 15
 * s.
 */
const answerMs = 10_000;
/** Maximum number of requests whose work runs at once. More would be waiting than clients still ask for. */
const most = 100;

/** Runs requests that change stored state. They may take long and then continue after their answer. */
export class UnderWay {
  private readonly clock: Clock;
  private readonly unsaved: () => WatchfireError | undefined;
  private count = 0;

  /** @param unsaved returns why nothing can be saved at present */
  constructor(clock: Clock, unsaved: () => WatchfireError | undefined) {
    this.clock = clock;
    this.unsaved = unsaved;
  }

  /**
   * Runs the work and returns its result. `of` names it in messages. Work that takes too long continues.
   * @throws WatchfireError WF_RUNTIME_PENDING if it continues; WF_RUNTIME_BUSY if it was not begun
   */
  async answer<T>(of: string, work: () => Promise<T>): Promise<T> {
    if (this.count >= most) {
      throw new WatchfireError("WF_RUNTIME_BUSY", {
        what: `${of} was not started: ${most} requests are waiting already`,
      });
    }
    this.count++;
    // The work may throw synchronously.
    const done = Promise.try(work).finally(() => this.count--);
    done.catch(() => undefined); // the caller may already have an answer
    const late = new AbortController();
    const tooLate = pause(this.clock, answerMs, late.signal).then(() => this.pending(of));
    return Promise.race([done, tooLate]).finally(() => late.abort());
  }

  /** Reports work that continues if nothing can be saved. @throws WatchfireError WF_RUNTIME_PENDING */
  assertSaves(of: string): void {
    if (this.unsaved()) this.pending(of);
  }

  private pending(of: string): never {
    const cause = this.unsaved();
    const why = cause ? `, because checkpoints cannot be saved: ${cause.code}: ${cause.detail.what}` : "";
    throw new WatchfireError("WF_RUNTIME_PENDING", { what: `${of} is accepted and not done yet${why}`, cause });
  }
}
