import { type DiedListener, Executor } from "./executor.host.ts";
import type { ExecutorSettings } from "./executor-process.host.ts";

/**
 * The executors: some that functions share, one warm spare that takes the place of any that dies, and one each for
 * functions in quarantine.
 */
export class Pool {
  private readonly settings: ExecutorSettings;
  private readonly count: number;
  private readonly died: DiedListener;
  private readonly shared = new Set<Executor>();
  private readonly quarantine = new Map<string, Executor>();
  private readonly living = new Set<Executor>();
  private spare: Executor | undefined;
  private closed = false;

  /** `count`: executors that functions share. */
  constructor(settings: ExecutorSettings, count: number, died: DiedListener) {
    this.settings = settings;
    this.count = count;
    this.died = died;
    // The first function finds it started.
    this.spare = this.spawn();
  }

  /** All that live, those that are about to end as well. */
  get executors(): readonly Executor[] {
    return [...this.living];
  }

  /** The executor with the fewest functions; a new one while there are fewer than the pool may have. */
  take(): Executor {
    const usable = [...this.shared].filter((executor) => executor.isUsable);
    if (usable.length < this.count) {
      const executor = this.promote();
      this.shared.add(executor);
      return executor;
    }
    return usable.reduce((least, executor) => (executor.size < least.size ? executor : least));
  }

  /** The executor that runs this function and nothing else. */
  takeQuarantine(name: string): Executor {
    const own = this.quarantine.get(name);
    if (own?.isUsable) return own;
    const executor = this.promote();
    this.quarantine.set(name, executor);
    return executor;
  }

  /** Gives up a function's quarantine executor; the caller ends it once nothing runs there. */
  leaveQuarantine(name: string): Executor | undefined {
    const executor = this.quarantine.get(name);
    this.quarantine.delete(name);
    return executor;
  }

  close(): void {
    this.closed = true;
    for (const executor of this.executors) executor.kill("closed", "the sandbox is closed");
  }

  private promote(): Executor {
    const executor = this.spare?.isUsable ? this.spare : this.spawn();
    this.spare = undefined;
    // Started a little later, so that it does not compete with the work that the new one was needed for.
    this.settings.clock.after(
      spareDelayMs,
      () => {
        if (!this.closed) this.spare ??= this.spawn();
      },
      { unref: true },
    );
    return executor;
  }

  private spawn(): Executor {
    const spawned = new Executor(this.settings, (executor, reason, detail, culprits) => {
      this.shared.delete(executor);
      this.living.delete(executor);
      if (this.spare === executor) this.spare = undefined;
      for (const [name, own] of this.quarantine) if (own === executor) this.quarantine.delete(name);
      this.died(executor, reason, detail, culprits);
    });
    this.living.add(spawned);
    return spawned;
  }
}

/** Milliseconds between an executor's being taken and the start of the next spare: start-up is over by then. */
const spareDelayMs = 1000;
