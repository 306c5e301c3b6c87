import type { Clock, Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { BuilderEnded, BuilderProcess } from "./builder-process.ts";
import type { Bundle } from "./bundle.ts";
import { buildLimit, idleMs, slowMs } from "./limits.ts";
import { readProject } from "./project.ts";

/** Repetitions of a build because its builder ended during it. */
const rebuilds = 2;

/** Most slow builds, in addition to the regular ones. */
const slowLimit = 8;

export interface BuildersOptions {
  /** The functions folder. */
  readonly folder: string;
  readonly clock: Clock;
  /** How long a builder waits for the next build, in milliseconds; with its esbuild it takes 70 MB. Default: one minute. */
  readonly idleMs?: number;
}

/** Builds the functions of one folder in processes that can read only that folder and its packages. */
export class Builders {
  private readonly options: BuildersOptions;
  private readonly idle = new Map<BuilderProcess, Timer>();
  private readonly busy = new Set<BuilderProcess>();
  /** Functions that each wake one waiting build. A build that was woken or has stopped waiting is removed. */
  private readonly waiting = new Set<() => void>();
  private running = 0;
  private slow = 0;
  private closed = false;

  constructor(options: BuildersOptions) {
    this.options = options;
  }

  /** Starts builders ahead of the first builds. */
  warm(count = 1): void {
    for (let left = count; left > 0; left--) this.rest(this.start());
  }

  /**
   * Bundles a function's handler and everything it imports into one script for an isolate. Supports TypeScript, JavaScript, and
   * npm packages installed next to the functions.
   * @param signal ends the build, which then rejects with the signal's reason
   * @throws WatchfireError whose `faults` are all code that an isolate could not run and all files that must not be read, each
   * with file, line and column. WF_BUNDLE_LIMIT if the build exceeds a limit; WF_BUNDLE_BROKEN_OFF if its process ended each time
   */
  async bundle({ handler }: Pick<FunctionManifest, "handler">, signal?: AbortSignal): Promise<Bundle> {
    await this.turn(signal);
    let isSlow = false;
    const timer = this.options.clock.after(slowMs, () => {
      isSlow = true;
      this.slow++;
      this.next();
    });
    try {
      return await this.attempts(handler, signal);
    } finally {
      timer.cancel();
      this.running--;
      if (isSlow) this.slow--;
      this.next();
    }
  }

  /** Ends all builders, running builds, and waiting builds. */
  close(): void {
    this.closed = true;
    for (const builder of [...this.idle.keys(), ...this.busy]) builder.close();
    this.idle.clear();
  }

  private async attempts(handler: string, signal?: AbortSignal): Promise<Bundle> {
    const brokenOff = (what: string, cause?: Error) =>
      new WatchfireError("WF_BUNDLE_BROKEN_OFF", { what, place: { file: handler }, cause });
    for (let left = rebuilds; ; left--) {
      if (this.closed) throw brokenOff("nothing is built any more: the runtime ends");
      const builder = this.take() ?? this.start();
      this.busy.add(builder);
      try {
        return await builder.bundle(handler, signal);
      } catch (error) {
        if (!(error instanceof BuilderEnded)) throw error;
        if (left > 0) continue;
        const what = `the process that builds ended during this build, ${rebuilds + 1} times: ${error.message}`;
        throw brokenOff(what, error);
      } finally {
        this.busy.delete(builder);
        this.rest(builder);
      }
    }
  }

  private start(): BuilderProcess {
    const { folder, clock } = this.options;
    return new BuilderProcess(readProject(folder), clock);
  }

  private take(): BuilderProcess | undefined {
    for (const [builder, timer] of this.idle) {
      timer.cancel();
      this.idle.delete(builder);
      if (!builder.isOver) return builder;
    }
    return undefined;
  }

  /** Keeps a builder for the next build, for a minute. */
  private rest(builder: BuilderProcess): void {
    if (this.closed) builder.close();
    if (builder.isOver) return;
    const expire = () => {
      this.idle.delete(builder);
      builder.close();
    };
    this.idle.set(builder, this.options.clock.after(this.options.idleMs ?? idleMs, expire, { unref: true }));
  }

  /** Waits until a build may begin. A build that takes long releases its place, up to `slowLimit` of them. */
  private async turn(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    while (this.running - this.slow >= buildLimit || this.running >= buildLimit + slowLimit) {
      const { promise, resolve: wake } = Promise.withResolvers<void>();
      this.waiting.add(wake);
      signal?.addEventListener("abort", () => wake(), { once: true });
      await promise;
      // A woken build that was aborted passes its place on.
      if (signal?.aborted && !this.waiting.delete(wake)) this.next();
      signal?.throwIfAborted();
    }
    this.running++;
  }

  private next(): void {
    const [wake] = this.waiting;
    if (!wake) return;
    this.waiting.delete(wake);
    wake();
  }
}
