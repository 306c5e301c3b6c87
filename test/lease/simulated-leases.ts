import fc from "fast-check";
import type { Clock, Timer } from "../../runtime/base/clock.ts";
import type { LeaseApi } from "../../runtime/lease/lease-api.ts";
import { changedLease, type LeaseRecord, microTime, readLease } from "../../runtime/lease/lease-record.ts";
import type { VirtualClock } from "../virtual-clock.ts";

/** The outcome of one request. */
export interface Fate {
  /** Milliseconds until the request reaches the server, and from there until the answer is back. */
  readonly thereMs: number;
  readonly backMs: number;
  /** `lost`: it never arrives. `answer lost`: it arrives, but its answer does not. `error`: the server answers 500. */
  readonly accident?: "lost" | "answer lost" | "error";
}

/** Sends a request from one process through the simulated network. */
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
      // The network continues while a process is stopped.
      network.after(thereMs, () => {
        if (accident === "error") return void clock.after(backMs, () => settle(() => reject(new Error("500"))));
        const answer = work();
        if (accident !== "answer lost") clock.after(backMs, () => settle(() => resolve(answer)));
      });
    });
  };

/** One Lease with etcd's compare-and-swap, behind an unreliable network. */
export class SimulatedLease {
  object: { metadata: Record<string, unknown>; spec: Record<string, unknown> } | undefined;
  private revision = 0;
  private uids = 0;

  /** The holder on the server. */
  get holder(): string {
    return String(this.object?.spec.holderIdentity ?? "");
  }

  /** Writes an annotation as another client. */
  annotate(key: string, value: string): void {
    if (this.object) this.put({ ...this.object, metadata: { ...this.object.metadata, annotations: { [key]: value } } });
  }

  /** Writes another holder into the Lease, as a client that takes no part in the election. */
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

/** The clock of one process, which may be stopped, or suspended with its machine, and then continues late. */
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

  /** `asleep`: the machine is suspended, so its monotonic clock stands still; otherwise only the process is stopped. */
  stop(asleep: boolean): void {
    if (this.stopped) return;
    this.stopped = true;
    if (asleep) this.asleepSince = this.world.monotonic();
  }

  /** Continues: timers that became due meanwhile fire now, after `first`. */
  go(first: () => void): void {
    if (!this.stopped) return;
    this.stopped = false;
    if (this.asleepSince !== undefined) this.slept += this.world.monotonic() - this.asleepSince;
    this.asleepSince = undefined;
    first();
    for (const callback of this.due.splice(0)) callback();
  }
}

/** Requests that are prompt, late, or have an accident. */
export const fateOf: fc.Arbitrary<Fate> = fc.record(
  {
    thereMs: fc.oneof({ weight: 6, arbitrary: fc.nat(50) }, { weight: 1, arbitrary: fc.nat(30_000) }),
    backMs: fc.oneof({ weight: 6, arbitrary: fc.nat(50) }, { weight: 1, arbitrary: fc.nat(30_000) }),
    accident: fc.constantFrom("lost" as const, "answer lost" as const, "error" as const),
  },
  { requiredKeys: ["thereMs", "backMs"] },
);
