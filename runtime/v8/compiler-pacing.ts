import { setFlagsFromString } from "node:v8";

/** V8's own number of calls, from which on its slowest compiler, TurboFan, takes a function. */
const busyCalls = 3_000;
/** The number where there is time to spare. */
const patientCalls = 30_000;
const lookMs = 200;
/** At least this share of the loop's time is in use where better code pays at once. 1,000 events a second take 0.2 to 0.3. */
const busyShare = 0.4;

/**
 * Says when V8's slowest compiler may take a function of this process. An executor compiles on the threads that run its
 * events: 62 functions in 155 ms, the largest in 10. The parent has threads for that. But Linux likes to start those on the
 * main thread's core. The main thread then waits for up to 4 ms, though the other core is idle. At 1,000 events a second
 * V8's own number makes that go on for 30 s. Turns of a loop count like calls. A loop also waits longer for the
 * compiler before that one: a function's first 30,000 turns take up to a millisecond more.
 */
export class CompilerPacing {
  private readonly setFlags: (flags: string) => void;
  private calls = 0;

  /** @param setFlags of V8; default: those of this process */
  constructor(setFlags: (flags: string) => void = setFlagsFromString) {
    this.setFlags = setFlags;
    this.look(false);
  }

  /** @param isBusy whether events have come densely, or the process has had little time to spare */
  look(isBusy: boolean): void {
    const calls = isBusy ? busyCalls : patientCalls;
    if (calls === this.calls) return;
    this.calls = calls;
    this.setFlags(`--invocation-count-for-turbofan=${calls}`);
  }
}

/**
 * Lets a `CompilerPacing` follow this thread's event loop.
 * @returns ends that
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
