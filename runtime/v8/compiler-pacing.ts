import { setFlagsFromString } from "node:v8";

/** V8's default number of calls after which its slowest compiler, TurboFan, optimises a function. */
const busyCalls = 3_000;
/** The number used while the process is not busy. */
const patientCalls = 30_000;
const lookMs = 200;
/** Share of the event loop's time from which optimised code pays off at once. 1,000 events a second take 0.2 to 0.3. */
const busyShare = 0.4;

/**
 * Controls after how many calls V8's slowest compiler optimises a function of this process. An executor compiles on the threads
 * that run its events: 62 functions in 155 ms, the largest in 10. The parent has separate threads for that, but Linux tends to
 * start those on the main thread's core. The main thread then waits for up to 4 ms although the other core is idle; with V8's
 * default and 1,000 events a second that continues for 30 s. Iterations of a loop count like calls. A loop also waits longer for
 * the preceding compiler: a function's first 30,000 iterations take up to a millisecond more.
 */
export class CompilerPacing {
  private readonly setFlags: (flags: string) => void;
  private calls = 0;

  /** @param setFlags sets V8's flags; default: those of this process */
  constructor(setFlags: (flags: string) => void = setFlagsFromString) {
    this.setFlags = setFlags;
    this.look(false);
  }

  /** @param isBusy whether events arrive densely, or the process has little time to spare */
  look(isBusy: boolean): void {
    const calls = isBusy ? busyCalls : patientCalls;
    if (calls === this.calls) return;
    this.calls = calls;
    this.setFlags(`--invocation-count-for-turbofan=${calls}`);
  }
}

/**
 * Adapts a `CompilerPacing` to this thread's event loop.
 * @returns a function that stops it
 */
export function paceTierUp(tierUp: Pick<CompilerPacing, "look">): () => void {
  let before = performance.eventLoopUtilization();
  const looking = setInterval(() => {
    const now = performance.eventLoopUtilization();
    tierUp.look(performance.eventLoopUtilization(now, before).utilization >= busyShare);
    before = now;
  }, lookMs).unref();
  return () => clearInterval(looking);
}
