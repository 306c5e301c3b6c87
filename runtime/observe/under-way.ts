import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";

/** How long an answer may take, in milliseconds: the endpoints let go of a connection that is silent for 15 s. */
const answerMs = 10_000;
/** What goes on behind an answer at once: more would wait than anybody still asks for. */
const most = 100;

/** What was asked of the runtime and changes what is on record. That may take long, and goes on behind its answer. */
export class UnderWay {
  private readonly clock: Clock;
  private readonly unsaved: () => WatchfireError | undefined;
  private count = 0;

  /** @param unsaved why nothing can be saved at present */
  constructor(clock: Clock, unsaved: () => WatchfireError | undefined) {
    this.clock = clock;
    this.unsaved = unsaved;
  }

  /**
   * What the work comes to. `of` says what it is. Work that takes too long goes on.
   * @throws WatchfireError WF_RUNTIME_PENDING where it goes on; WF_RUNTIME_BUSY where nothing was begun
   */
  async answer<T>(of: string, work: () => Promise<T>): Promise<T> {
    if (this.count >= most) {
      throw new WatchfireError("WF_RUNTIME_BUSY", { what: `${of} was not begun: ${most} requests wait already` });
    }
    this.count++;
    // Work may be refused before there is a promise of it.
    const done = Promise.try(work).finally(() => this.count--);
    done.catch(() => undefined); // nobody hears of it who was answered before
    const late = new AbortController();
    const tooLate = pause(this.clock, answerMs, late.signal).then(() => this.pending(of));
    return Promise.race([done, tooLate]).finally(() => late.abort());
  }

  /** Says so of work that goes on, where nothing can be saved. @throws WatchfireError WF_RUNTIME_PENDING */
  assertSaves(of: string): void {
    if (this.unsaved()) this.pending(of);
  }

  private pending(of: string): never {
    const cause = this.unsaved();
    const why = cause ? `, since positions cannot be saved: ${cause.code}: ${cause.detail.what}` : "";
    throw new WatchfireError("WF_RUNTIME_PENDING", { what: `${of} is taken and not done yet${why}`, cause });
  }
}
