import { ExecutorHandle } from "./executor.ts";
import type { DeathReason, ExecutorSettings } from "./executor-process.ts";

/** Maximum numbers of executors. */
interface PoolLimits {
  /** Executors shared by the functions without a trust group. */
  readonly shared: number;
  /** All others: one for each trust group and one for each quarantined function. */
  readonly own: number;
}

/** Called when an executor has died. `culprits` are the functions that may have caused it. */
type DiedListener = (
  executor: ExecutorHandle,
  reason: DeathReason,
  detail: string,
  culprits: readonly string[],
) => void;

/** The trust group of functions that name no group. */
export const commonGroup = "";

/**
 * Number of functions that each shared executor has before another one starts. One executor runs isolates on all cores, and the
 * parent is busy before its main thread is; further ones take 70 MB each, and limit how many functions one death interrupts.
 */
const functionsEach = 16;
/** Milliseconds between an executor's death and the start of a spare, so that its replacements start first. */
const spareDelayMs = 1000;
/**
 * Milliseconds after an executor's death for which a spare is kept, because code that crashes one is likely to do so again.
 * Without a spare the next executor is started on demand, which takes 0.1 s (measured). A spare takes 60 MB of resident memory.
 */
const spareKeptMs = 600_000;
/** Milliseconds without an event after which an executor may be closed in favour of a function that has no executor. */
const evictMs = 1000;

/**
 * The executors. A trust group has a separate executor: no other code or environment is ever loaded there. After a death, a warm
 * spare on which nothing has run replaces the next executor that dies. Executors that are unused or long idle are closed, except
 * for the shared ones.
 */
export class ExecutorPool {
  private readonly settings: ExecutorSettings;
  private readonly limits: PoolLimits;
  private readonly died: DiedListener;
  private readonly living = new Set<ExecutorHandle>();
  private readonly shared = new Set<ExecutorHandle>();
  /** Keyed by `group/` and a trust group's name, or by `function/` and the name of a quarantined function. */
  private readonly own = new Map<string, ExecutorHandle>();
  private spare: ExecutorHandle | undefined;
  /** When an executor that had run code last ended, in monotonic milliseconds. */
  private endedAt = Number.NEGATIVE_INFINITY;
  private lastNumber = 0;
  private closed = false;

  constructor(settings: ExecutorSettings, limits: PoolLimits, died: DiedListener) {
    this.settings = settings;
    this.limits = limits;
    this.died = died;
    // Started in advance for the first function.
    this.spare = this.spawn();
    this.sweepLater();
  }

  /** All living executors, including those that are about to end. */
  get executors(): readonly ExecutorHandle[] {
    return [...this.living];
  }

  /**
   * Returns the executor of a trust group. For a function without one, returns the shared executor with the fewest functions, or
   * a new one if each has many and the maximum is not reached. Returns `undefined` if the maximum is reached and all are busy.
   */
  take(group: string): ExecutorHandle | undefined {
    if (group !== commonGroup) return this.takeOwn(`group/${group}`);
    const usable = [...this.shared].filter((executor) => executor.isUsable);
    const least = usable.toSorted((a, b) => a.size - b.size)[0];
    if (least && (least.size < functionsEach || usable.length >= this.limits.shared)) return least;
    const executor = this.promote();
    this.shared.add(executor);
    return executor;
  }

  /** Returns the executor that runs only this function, or `undefined` as in `take`. */
  takeAlone(name: string): ExecutorHandle | undefined {
    return this.takeOwn(`function/${name}`);
  }

  /** Ends a function's exclusive use of its executor, which ends after its last event there. */
  leaveAlone(name: string): void {
    this.own.delete(`function/${name}`);
  }

  close(): void {
    this.closed = true;
    for (const executor of this.executors) executor.kill("closed", "the sandbox is closed");
  }

  private takeOwn(key: string): ExecutorHandle | undefined {
    const own = this.own.get(key);
    if (own?.isUsable) return own;
    this.own.delete(key);
    if (this.ownCount >= this.limits.own && !this.evict()) return undefined;
    const executor = this.promote();
    this.own.set(key, executor);
    return executor;
  }

  /** Number of executors that are not shared, including those that are about to end. */
  private get ownCount(): number {
    const isOwn = (executor: ExecutorHandle) =>
      !executor.isDead && !this.shared.has(executor) && executor !== this.spare;
    return this.executors.filter(isOwn).length;
  }

  /** Closes the executor that has been idle for longest, if it was idle for `evictMs`. Returns whether it did. */
  private evict(): boolean {
    const idle = [...this.own.values()].toSorted((a, b) => b.idleMs - a.idleMs)[0];
    if (!idle || idle.idleMs < evictMs) return false;
    this.letGo(idle, "another function needs its place");
    return true;
  }

  private letGo(executor: ExecutorHandle, why: string): void {
    for (const [key, one] of this.own) if (one === executor) this.own.delete(key);
    executor.kill("closed", why);
  }

  private sweepLater(): void {
    const { clock, idleMs } = this.settings;
    const sweep = () => {
      if (this.closed) return;
      for (const executor of this.own.values()) if (executor.idleMs >= idleMs) this.letGo(executor, "it was idle");
      if (!this.wantsSpare) this.spare?.kill("closed", "no executor has ended for long");
      this.sweepLater();
    };
    clock.after(idleMs, sweep, { unref: true });
  }

  private promote(): ExecutorHandle {
    const executor = this.spare?.isUsable ? this.spare : this.spawn();
    this.spare = undefined;
    this.spareLater();
    return executor;
  }

  private get wantsSpare(): boolean {
    return !this.closed && this.settings.clock.monotonic() - this.endedAt < spareKeptMs;
  }

  /** Starts a spare later, so that it does not compete with current work. */
  private spareLater(): void {
    const start = () => {
      if (this.wantsSpare) this.spare ??= this.spawn();
    };
    if (this.wantsSpare) this.settings.clock.after(spareDelayMs, start, { unref: true });
  }

  private spawn(): ExecutorHandle {
    const executor = new ExecutorHandle(this.settings, ++this.lastNumber, {
      died: (reason, detail, culprits) => {
        this.shared.delete(executor);
        this.living.delete(executor);
        if (this.spare === executor) this.spare = undefined;
        else {
          this.endedAt = this.settings.clock.monotonic();
          this.spareLater();
        }
        for (const [key, one] of this.own) if (one === executor) this.own.delete(key);
        this.died(executor, reason, detail, culprits);
      },
      deserted: () => {
        if (!this.shared.has(executor)) executor.kill("closed", "no function is left there");
      },
    });
    this.living.add(executor);
    return executor;
  }
}
