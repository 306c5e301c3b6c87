import { ExecutorHandle } from "./executor.ts";
import type { DeathReason, ExecutorSettings } from "./executor-process.ts";

/** How many executors there may be. */
interface PoolLimits {
  /** Those that the functions of no trust group share. */
  readonly shared: number;
  /** All others: one for each trust group, and one for each function that runs alone. */
  readonly own: number;
}

/** Told when an executor is gone; `culprits` are the functions whose doing it may be. */
type DiedListener = (
  executor: ExecutorHandle,
  reason: DeathReason,
  detail: string,
  culprits: readonly string[],
) => void;

/** The trust group of functions that name none. */
export const commonGroup = "";

/** Milliseconds between an executor's end and the start of a spare: those that take its place are started by then. */
const spareDelayMs = 1000;
/**
 * Milliseconds since an executor's end in which a spare is kept, because code that ends one does so again. Without one the next
 * is started when it is needed, which takes 0.1 s (measured). A spare is 60 MB resident.
 */
const spareKeptMs = 600_000;
/** Milliseconds without an event after which an executor gives way to a function that has none. */
const evictMs = 1000;

/**
 * The executors. Those of a trust group are its own: nobody else's code or environment comes there, before or after.
 * Once one has died, a warm spare, on which nothing has run, takes the place of the next that does. One that is nobody's any
 * more, or had no event for long, is let go of. Those that the functions without a group share are kept.
 */
export class ExecutorPool {
  private readonly settings: ExecutorSettings;
  private readonly limits: PoolLimits;
  private readonly died: DiedListener;
  private readonly living = new Set<ExecutorHandle>();
  private readonly shared = new Set<ExecutorHandle>();
  /** By `group/` and a trust group's name, or `function/` and that of a function that runs alone. */
  private readonly own = new Map<string, ExecutorHandle>();
  private spare: ExecutorHandle | undefined;
  /** When an executor ended last on which something had run, in monotonic milliseconds. */
  private endedAt = Number.NEGATIVE_INFINITY;
  private lastNumber = 0;
  private closed = false;

  constructor(settings: ExecutorSettings, limits: PoolLimits, died: DiedListener) {
    this.settings = settings;
    this.limits = limits;
    this.died = died;
    // The first function finds it started.
    this.spare = this.spawn();
    this.sweepLater();
  }

  /** All that live, those that are about to end as well. */
  get executors(): readonly ExecutorHandle[] {
    return [...this.living];
  }

  /**
   * The executor of a trust group. For a function without one it is the shared executor with the fewest functions, or a
   * new one while there is room for one. Undefined where there are too many already, and all are at work.
   */
  take(group: string): ExecutorHandle | undefined {
    if (group !== commonGroup) return this.takeOwn(`group/${group}`);
    const usable = [...this.shared].filter((executor) => executor.isUsable);
    if (usable.length < this.limits.shared) {
      const executor = this.promote();
      this.shared.add(executor);
      return executor;
    }
    return usable.reduce((least, executor) => (executor.size < least.size ? executor : least));
  }

  /** The executor that runs this function and nothing else; undefined as above. */
  takeAlone(name: string): ExecutorHandle | undefined {
    return this.takeOwn(`function/${name}`);
  }

  /** The function runs alone no more: its executor ends once its last event there has. */
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

  /** Those that only some may use, the leaving ones as well. */
  private get ownCount(): number {
    const isOwn = (executor: ExecutorHandle) =>
      !executor.isDead && !this.shared.has(executor) && executor !== this.spare;
    return this.executors.filter(isOwn).length;
  }

  /** Lets the one go that has had no event for longest, if it had none for a while. */
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

  /** Not at once, so that it does not compete with the work that the others have now. */
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
