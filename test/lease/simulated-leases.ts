import type { Clock, Timer } from "../../runtime/base/clock.ts";
import type { LeaseApi } from "../../runtime/lease/lease-api.ts";
import { changedLease, type LeaseRecord, microTime, readLease } from "../../runtime/lease/lease-record.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** The fate of one request. */
export interface Fate {
  /** Milliseconds until the server has it, and from there until the answer is back. */
  readonly thereMs: number;
  readonly backMs: number;
  /** It never arrives; or it arrives, and its answer does not; or the server says 500. */
  readonly accident?: "lost" | "answer lost" | "error";
}

/** A request from one process: what becomes of it on the way, and back. */
export const caller =
  (network: VirtualClock, clock: Clock, fate: () => Fate) =>
  async <T>(timeoutMs: number, work: () => T): Promise<T> => {
    const { thereMs, backMs, accident } = fate();
    return new Promise((resolve, reject) => {
      const limit = clock.after(timeoutMs, () => reject(new Error("timeout")));
      const settle = (say: () => void) => {
        limit.cancel();
        say();
      };
      if (accident === "lost") return;
      // The network goes on while a process stands still.
      network.after(thereMs, () => {
        if (accident === "error") return void clock.after(backMs, () => settle(() => reject(new Error("500"))));
        const answer = work();
        if (accident !== "answer lost") clock.after(backMs, () => settle(() => resolve(answer)));
      });
    });
  };

/** One Lease with etcd's compare-and-swap, behind a network in which anything may happen to a request. */
export class SimulatedLease {
  object: { metadata: Record<string, unknown>; spec: Record<string, unknown> } | undefined;
  private revision = 0;
  private uids = 0;

  /** The holder as the server has it. */
  get holder(): string {
    return String(this.object?.spec.holderIdentity ?? "");
  }

  /** Somebody else writes an annotation. */
  annotate(key: string, value: string): void {
    if (this.object) this.put({ ...this.object, metadata: { ...this.object.metadata, annotations: { [key]: value } } });
  }

  /** Somebody who takes no part in the election writes himself into it. */
  seize(holderIdentity: string, leaseDurationSeconds: number): void {
    const renewTime = microTime(this.network.now());
    this.put({ metadata: { name: this.name, uid: "uid" }, spec: { holderIdentity, leaseDurationSeconds, renewTime } });
  }

  remove(): void {
    this.object = undefined;
    this.revision++;
  }

  /** The API as one process reaches it. */
  api(clock: Clock, fate: () => Fate): LeaseApi {
    const call = caller(this.network, clock, fate);
    return {
      get: (timeoutMs) => call(timeoutMs, () => (this.object ? readLease(this.object) : undefined)),
      create: (change, timeoutMs) =>
        call(timeoutMs, () => {
          if (this.object) return "conflict" as const;
          return this.put(changedLease({ metadata: { name: this.name, uid: `uid-${++this.uids}` } }, change));
        }),
      update: (record, change, timeoutMs) =>
        call(timeoutMs, () => {
          if (this.object?.metadata.resourceVersion !== record.resourceVersion) return "conflict" as const;
          return this.put(changedLease(record.object, change));
        }),
    };
  }

  private readonly network: VirtualClock;
  private readonly name: string;

  constructor(network: VirtualClock, name = "l") {
    this.network = network;
    this.name = name;
  }

  private put(object: object): LeaseRecord {
    const { metadata, ...rest } = structuredClone(object) as NonNullable<SimulatedLease["object"]>;
    this.object = { ...rest, metadata: { ...metadata, resourceVersion: String(++this.revision) } };
    return readLease(this.object);
  }
}

/** The clock of one process, which may be stopped, or asleep with its machine, and goes on late. */
export class ProcessClock implements Clock {
  private readonly world: VirtualClock;
  private readonly due: (() => void)[] = [];
  private slept = 0;
  private asleepSince: number | undefined;
  stopped = false;

  constructor(world: VirtualClock) {
    this.world = world;
  }

  now(): number {
    return this.world.now();
  }

  sinceBoot(): number {
    return this.world.sinceBoot();
  }

  monotonic(): number {
    return (this.asleepSince ?? this.world.monotonic()) - this.slept;
  }

  after(delayMs: number, callback: () => void): Timer {
    let cancelled = false;
    const timer = this.world.after(delayMs, () => {
      if (cancelled) return;
      if (this.stopped) this.due.push(() => !cancelled && callback());
      else callback();
    });
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  /** `asleep`: the machine sleeps, so that its monotonic clock stands still; otherwise the process alone is stopped. */
  stop(asleep: boolean): void {
    if (this.stopped) return;
    this.stopped = true;
    if (asleep) this.asleepSince = this.world.monotonic();
  }

  /** Goes on: what came due meanwhile happens now, but for what `first` looks at before. */
  go(first: () => void): void {
    if (!this.stopped) return;
    this.stopped = false;
    if (this.asleepSince !== undefined) this.slept += this.world.monotonic() - this.asleepSince;
    this.asleepSince = undefined;
    first();
    for (const callback of this.due.splice(0)) callback();
  }
}
