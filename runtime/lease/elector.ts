import { type Clock, pause, type Random, type Timer } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import type { LeaseApi } from "./lease-api.ts";
import { type Fence, fenceOf, isSame, type LeaseChange, type LeaseRecord, microTime } from "./lease-record.ts";

/**
 * Default milliseconds after its last change for which no other process takes the Lease. A third less than client-go's default, for
 * a takeover within 15 s. No replica has a shorter one: two requests fit into a holder's time.
 */
export const leaseMs = 10_000;
/** The longest that a replica may have. */
export const mostLeaseMs = 120_000;
/**
 * Share of that time, after a holder sent its last successful renewal, at which it stops. With the default it stops 3 s before another
 * may begin.
 */
const giveUpShare = 0.7;
/** The same between two renewals. Three may fail before the holder gives up. */
const renewShare = 0.2;
/** Milliseconds between two checks of a candidate. */
const lookMs = 1_000;
/** Milliseconds until the retry of a failed renewal. */
const againMs = 500;
/** Timeout of one request in milliseconds. Two fit into a holder's time. */
const requestMs = 3_000;

/** Returns why a process may not take the Lease although it is free, or `undefined` if it may. */
export type Eligible = (annotations: Readonly<Record<string, string>>) => string | undefined;

export interface ElectorOptions {
  readonly api: LeaseApi;
  /** Unique to a pod, or to a process outside one. Another holder with the same identity is considered dead. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  /** Called each time the Lease is free. Default: always eligible. */
  readonly eligible?: Eligible;
  /**
   * Milliseconds without a renewal after which others may take it, from 10 s to 2 min. Replicas with different ones wait for the
   * longer. Default 10 s.
   */
  readonly leaseMs?: number;
  /** Whether a holder creates its Lease again if it was deleted while the term is valid. Default: it has lost it. */
  readonly makesAgain?: boolean;
}

/** The state of the Lease as a candidate sees it. */
export interface Candidacy {
  /** The holder; "" if the Lease is free. */
  readonly holder: string;
  /** Why this process may not take it, or why its holder may not be a replica, in which case no replica works. */
  readonly obstacle: string | undefined;
}

/**
 * Difference between clocks, in milliseconds, above which one was set or the machine slept. Drift is at most 5 ms in a term's 10
 * s (NTP, 500 ppm).
 */
const apartMs = 100;

/** A moment by all clocks. The monotonic clock stops while a machine sleeps; wall time may be set. */
interface ClockReading {
  readonly monotonic: number;
  readonly wall: number;
  readonly boot: number;
}

interface Term {
  /** Fence of the current Lease object. A Lease that was deleted and created again has another uid. */
  fence: Fence;
  /** When the last successful renewal was sent. */
  since: ClockReading;
  /** When this process last requested that its Lease be created again, in wall-clock milliseconds. */
  madeAgainAt?: number | undefined;
  /** The number that this process last requested for its Lease. */
  raisedTo?: number;
}

/**
 * Candidate for and holder of one Lease; it holds it at most once. A candidate takes the Lease when it is free, or has not
 * changed for its duration by the candidate's own clock. A holder renews it. It considers itself the holder for at most 7 s of
 * 10 s after it sent its last successful renewal, whatever later answers say. The clocks of two machines are never compared.
 */
export class Elector {
  /** Resolves at once when the Lease is lost. Never resolves if it is released. */
  readonly lost: Promise<WatchfireError>;
  private readonly options: ElectorOptions;
  private readonly leaseMs: number;
  private readonly giveUpMs: number;
  private readonly renewMs: number;
  private readonly losing = Promise.withResolvers<WatchfireError>();
  private record: LeaseRecord | undefined;
  /** The Lease's duration when last seen, in milliseconds; also after it was deleted. */
  private recordedMs = 0;
  /**
   * The Lease's version when last seen, and since when it has been that. An `undefined` version means that there was no Lease.
   */
  private seen: { readonly version: string | undefined; readonly at: number; readonly missed: boolean } | undefined;
  private obstacle: string | undefined;
  /** Why the holder may not be a replica of this runtime. */
  private stranger: string | undefined;
  private trouble = "";
  private readonly annotating: LeaseWriteRetries;
  /** The holder that was last logged. */
  private loggedHolder = "";
  private term: Term | undefined;
  private deadline: Timer | undefined;
  private readonly renewals = new AbortController();
  /** Serialises writes, each based on the resourceVersion of the preceding one. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(options: ElectorOptions) {
    this.options = options;
    this.leaseMs = options.leaseMs ?? leaseMs;
    this.giveUpMs = giveUpShare * this.leaseMs;
    this.renewMs = renewShare * this.leaseMs;
    this.lost = this.losing.promise;
    this.annotating = new LeaseWriteRetries(`an annotation of the Lease of ${options.identity}`, options.log);
  }

  /** Whether it is held now. Must be checked just before any action that is reserved for the holder. */
  get holds(): boolean {
    if (!this.term) return false;
    if (this.age(this.term.since) < this.giveUpMs) return true;
    // The error of the last renewal is more informative than the elapsed time.
    this.lose(`it could not be renewed in time${this.trouble === "" ? "" : `: ${this.trouble}`}`);
    return false;
  }

  /** The fence of the current term. */
  get fence(): Fence | undefined {
    return this.term?.fence;
  }

  /** The Lease's annotations when last seen. */
  get annotations(): Readonly<Record<string, string>> {
    return this.record?.annotations ?? {};
  }

  /** `undefined` before the first check, and if nothing keeps this process from holding it. */
  get candidacy(): Candidacy | undefined {
    const { record, obstacle = this.stranger } = this;
    if (this.term || !record) return undefined;
    return obstacle !== undefined || record.holder !== "" ? { holder: record.holder, obstacle } : undefined;
  }

  /** Why the held Lease cannot be annotated; `undefined` if it can. */
  get unwritten(): WatchfireError | undefined {
    return this.term && this.annotating.trouble;
  }

  /**
   * State to report. For a candidate: its candidacy, or, if that is unknown, why the Lease cannot be read or taken. For a holder:
   * why it cannot be annotated.
   */
  get standing(): Candidacy | undefined {
    const { candidacy, trouble, unwritten } = this;
    if (unwritten) return { holder: this.options.identity, obstacle: unwritten.message };
    if (this.term || trouble === "") return candidacy;
    return { holder: candidacy?.holder ?? "", obstacle: candidacy?.obstacle ?? trouble };
  }

  /**
   * Resolves once the Lease is held. Retries after failures of the API server. @throws the signal's reason if it aborts; the
   * Lease is not held then
   */
  async campaign(signal: AbortSignal): Promise<void> {
    const { clock, random, log, identity } = this.options;
    while (!(await this.attempt())) await pause(clock, this.waitMs() * (0.9 + 0.2 * random()), signal);
    log.info({ identity, fence: this.fence?.number }, "lease taken");
    // The request was sent before the signal aborted, so the Lease is not wanted any more.
    if (signal.aborted) await this.release();
    signal.throwIfAborted();
    void this.renew();
  }

  /**
   * Writes annotations, retrying while the Lease is held. An `undefined` value removes one. @throws WatchfireError WF_LEASE_LOST
   * if it is lost meanwhile
   */
  async annotate(annotations: Readonly<Record<string, string | undefined>>): Promise<void> {
    if (!(await this.persist({ annotations }))) throw lostError("it was lost before it could be annotated");
  }

  /** Raises the fence above a number, while the Lease is held. Returns the fence, or `undefined` if the Lease is lost. */
  async raise(above: number): Promise<Fence | undefined> {
    await this.persist({ transitions: above + 1 });
    return this.holds ? this.fence : undefined;
  }

  /**
   * Releases the Lease, so that another process can take it at once. Work that needs the Lease must have ended. Never rejects.
   */
  async release(): Promise<void> {
    const { term } = this;
    if (!term) return;
    this.end();
    await this.last;
    const { api, log, identity } = this.options;
    try {
      for (let tries = 0; tries < 3 && this.record && isOfTerm(this.record, identity, term); tries++) {
        const released = await api.update(this.record, { holder: "" }, requestMs);
        if (released !== "conflict") {
          log.info({ identity }, "lease released");
          return;
        }
        this.record = await api.get(requestMs);
      }
      log.info({ identity, holder: this.record?.holder }, "lease not released, another process has written it");
    } catch (error) {
      log.warn({ identity, error: String(error) }, "lease not released, it expires by itself");
    }
  }

  /** Writes a change, retrying while the Lease is held. Returns false if it is lost. */
  private async persist(change: LeaseChange): Promise<boolean> {
    while (this.holds) {
      if (await this.write(change)) {
        this.annotating.written();
        return true;
      }
      if (this.holds) this.annotating.failed(this.trouble);
      await pause(this.options.clock, againMs);
    }
    return false;
  }

  /** Returns whether it is held now. */
  private async attempt(): Promise<boolean> {
    const { log, identity } = this.options;
    try {
      const taken = await this.take();
      this.trouble = "";
      return taken;
    } catch (error) {
      const trouble = error instanceof Error ? error.message : String(error);
      if (trouble !== this.trouble) log.warn({ identity, error: trouble }, "lease cannot be read or taken");
      this.trouble = trouble;
      return false;
    }
  }

  private async take(): Promise<boolean> {
    const { api, clock, identity, eligible } = this.options;
    const record = await api.get(requestMs);
    if (record) this.recordedMs = record.durationMs;
    const termMs = Math.max(this.recordedMs, this.leaseMs);
    const now = clock.monotonic();
    // A renewal changes the spec. Other changes, such as annotations, are no sign of life.
    const version = record && JSON.stringify([record.uid, record.object.spec]);
    if (this.seen?.version !== version || !this.seen) {
      this.seen = { version, at: now, missed: this.seen !== undefined && version === undefined };
    }
    this.record = record;
    const unchangedMs = now - this.seen.at;
    if (!record) {
      // The holder of a deleted Lease may not know of it yet.
      if (this.seen.missed && unchangedMs < termMs) return false;
      const since = this.moment();
      return this.begin(await api.create(this.claim(1), requestMs), since);
    }
    const obstacle = eligible?.(record.annotations);
    if (obstacle !== this.obstacle && obstacle !== undefined) {
      this.options.log.warn({ identity, reason: obstacle }, "lease left to another");
    }
    this.obstacle = obstacle;
    const stranger = strangerIn(record, identity, this.leaseMs);
    if (stranger !== this.stranger && stranger !== undefined) {
      this.options.log.warn({ identity, holder: record.holder, reason: stranger }, "lease held by another program");
    }
    this.stranger = stranger;
    const isFree = record.holder === "" || record.holder === identity || unchangedMs >= termMs;
    if (obstacle === undefined && stranger === undefined && !isFree) this.logHolder(record.holder);
    if (obstacle !== undefined || !isFree) return false;
    const since = this.moment();
    return this.begin(await api.update(record, this.claim(record.transitions + 1), requestMs), since);
  }

  private logHolder(holder: string): void {
    if (holder !== this.loggedHolder)
      this.options.log.info({ identity: this.options.identity, holder }, "lease held by another");
    this.loggedHolder = holder;
  }

  private claim(transitions: number): LeaseChange {
    const now = this.options.clock.now();
    const { identity } = this.options;
    return { holder: identity, durationMs: this.leaseMs, transitions, acquiredAt: now, renewedAt: now };
  }

  private begin(written: LeaseRecord | "conflict", since: ClockReading): boolean {
    // A late answer counts as lost. The next attempt finds the Lease in this process' name.
    if (written === "conflict" || this.age(since) >= this.giveUpMs) return false;
    this.record = written;
    this.term = { fence: fenceOf(written), since };
    this.watchDeadline();
    return true;
  }

  /** Returns the milliseconds until a candidate's next check: a second, or less if the Lease may expire before. */
  private waitMs(): number {
    const { clock } = this.options;
    const { seen } = this;
    if (!seen || this.trouble !== "") return lookMs;
    const left = Math.max(this.recordedMs, this.leaseMs) - (clock.monotonic() - seen.at);
    return left > 0 ? Math.min(lookMs, left) : againMs;
  }

  private async renew(): Promise<void> {
    const { clock, random, log, identity } = this.options;
    const { signal } = this.renewals;
    let waitMs = this.renewMs;
    try {
      for (;;) {
        await pause(clock, waitMs * (0.9 + 0.2 * random()), signal);
        if (!this.holds) return;
        waitMs = (await this.write({})) ? this.renewMs : againMs;
        if (waitMs === againMs && this.term) log.warn({ identity, error: this.trouble }, "lease not renewed");
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Renews the Lease with a change. Returns whether it is certain that it was written. Never rejects. */
  private write(change: LeaseChange): Promise<boolean> {
    const written = this.last.then(() => this.writeNow(change));
    this.last = written;
    return written;
  }

  private async writeNow(change: LeaseChange): Promise<boolean> {
    const { api, clock, identity } = this.options;
    const { term, record } = this;
    if (!term || !record || !this.holds) return false;
    if (change.transitions !== undefined) {
      if (change.transitions <= term.fence.number) return true;
      term.raisedTo = change.transitions;
    }
    try {
      const since = this.moment();
      const written = await api.update(record, { ...change, renewedAt: clock.now() }, requestMs);
      if (this.term !== term || !this.holds) return false;
      if (written !== "conflict") return this.renewed(term, written, since);
      // It was annotated by another process, or an answer was lost. Only the fence tells whether it is still held.
      const found = await api.get(requestMs);
      if (this.term !== term || !this.holds) return false;
      this.trouble = "somebody else changed it";
      if (found && isOfTerm(found, identity, term)) {
        term.fence = fenceOf(found);
        this.record = found;
        return await this.writeNow(change);
      }
      if (!found && this.options.makesAgain) return await this.makeAgain(term, record, change);
      this.lose(found ? `${found.holder || "no replica"} holds it` : "it was deleted");
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
    }
    return false;
  }

  private renewed(term: Term, written: LeaseRecord, since: ClockReading): true {
    this.record = written;
    this.trouble = "";
    term.fence = fenceOf(written);
    term.since = since;
    this.watchDeadline();
    return true;
  }

  /**
   * Creates a deleted Lease again. Other processes wait for its duration after they saw that it is gone. One that never saw it may create it
   * earlier; then this process loses it at the next write.
   */
  private async makeAgain(term: Term, { annotations }: LeaseRecord, change: LeaseChange): Promise<boolean> {
    const { api, log, identity } = this.options;
    const since = this.moment();
    const claim = this.claim(term.fence.number);
    term.madeAgainAt = claim.acquiredAt;
    const kept = { ...annotations, ...change.annotations };
    const made = await api.create({ ...claim, ...change, annotations: kept }, requestMs);
    if (made === "conflict" || this.term !== term || !this.holds) return false;
    log.warn({ identity, lease: made.name }, "lease was deleted, created again");
    return this.renewed(term, made, since);
  }

  private watchDeadline(): void {
    this.deadline?.cancel();
    const { term } = this;
    if (!term) return;
    const leftMs = this.giveUpMs - this.age(term.since);
    this.deadline = this.options.clock.after(Math.max(0, leftMs), () => {
      if (this.holds) this.watchDeadline();
    });
  }

  private lose(why: string): void {
    const fence = this.term?.fence.number;
    this.end();
    this.options.log.warn({ identity: this.options.identity, fence, reason: why }, "lease lost");
    this.losing.resolve(lostError(why));
  }

  private end(): void {
    this.term = undefined;
    this.deadline?.cancel();
    this.renewals.abort();
  }

  private moment(): ClockReading {
    const { clock } = this.options;
    return { monotonic: clock.monotonic(), wall: clock.now(), boot: clock.sinceBoot() };
  }

  /**
   * Returns the milliseconds since a moment by the monotonic clock, which is read at every dispatch. If wall time advanced
   * differently, the machine slept or the clock was set. The time since boot, which is expensive to read, tells which.
   */
  private age({ monotonic, wall, boot }: ClockReading): number {
    const { clock } = this.options;
    const awake = clock.monotonic() - monotonic;
    const passed = clock.now() - wall;
    return Math.abs(passed - awake) < apartMs ? Math.max(awake, passed) : Math.max(awake, clock.sinceBoot() - boot);
  }
}

const isOf = (record: LeaseRecord, identity: string, fence: Fence): boolean =>
  record.holder === identity && isSame(fence, fenceOf(record));

/** Whether it was created by a request of this term whose answer was lost. */
const wasMadeAgain = ({ holder, transitions, acquired }: LeaseRecord, identity: string, term: Term): boolean =>
  term.madeAgainAt !== undefined &&
  holder === identity &&
  transitions === term.fence.number &&
  acquired === microTime(term.madeAgainAt);

/** Whether it was written in this term, whatever answer of it was lost. */
const isOfTerm = (record: LeaseRecord, identity: string, term: Term): boolean =>
  isOf(record, identity, term.fence) || wasMadeAgain(record, identity, term) || wasRaised(record, identity, term);

/** Whether its number was raised by a request of this term whose answer was lost. */
const wasRaised = (record: LeaseRecord, identity: string, { fence, raisedTo: number }: Term): boolean =>
  number !== undefined && isOf(record, identity, { ...fence, number });

/**
 * Describes why the holder does not look like a replica. `undefined` if the Lease is free, held by this process, or held by what
 * looks like a replica.
 */
function strangerIn({ holder, durationMs }: LeaseRecord, identity: string, leaseMs: number): string | undefined {
  if (holder === "" || holder === identity) return undefined;
  const set = statefulSetOf(identity);
  // While a new duration is rolled out, the replicas' differ.
  if (set !== undefined && statefulSetOf(holder) === set) return undefined;
  const odd =
    durationMs !== leaseMs
      ? `for ${durationMs / 1000} s at a time, which no replica of this runtime does`
      : set !== undefined && `which is not a pod of the StatefulSet ${set}`;
  return odd
    ? `${holder} holds the Lease, ${odd}; if it is not one of yours, remove holderIdentity from the Lease`
    : undefined;
}

/** The error that ends all work reserved for the holder. */
export const lostError = (what: string): WatchfireError => new WatchfireError("WF_LEASE_LOST", { what });

/** `<set>-<ordinal>_<uid>`. A Deployment's pod name ends in five characters, the name of a process outside a pod in eight. */
const identityOfPod = /^(.+)-\d{1,4}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns the StatefulSet whose pod has this identity, or `undefined` if it is not such a pod's. */
const statefulSetOf = (identity: string): string | undefined => identityOfPod.exec(identity)?.[1];

/** Number of failed tries of one write that are not reported. An API server that restarts answers again within them. */
const patience = 3;

/** Tracks a write to a Lease that is retried as long as the Lease is held, so that repeated failures are reported. */
export class LeaseWriteRetries {
  private readonly what: string;
  private readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  private failures = 0;
  private fault: WatchfireError | undefined;

  /** @param what describes the write, for messages */
  constructor(what: string, log: LeaseWriteRetries["log"]) {
    this.what = what;
    this.log = log;
  }

  /** Why it is not written, from the third failed try in a row; else `undefined`. */
  get trouble(): WatchfireError | undefined {
    return this.fault;
  }

  /** Records a failed try. */
  failed(why: string): void {
    if (++this.failures < patience) return;
    const fault = new WatchfireError("WF_LEASE_UNWRITTEN", {
      what: `${this.what} was tried ${patience} times: ${why}`,
    });
    if (fault.message !== this.fault?.message) this.log.warn({ error: fault.message }, "lease not written");
    this.fault = fault;
  }

  /** Records a success. */
  written(): void {
    this.failures = 0;
    if (this.fault) this.log.info({ lease: this.what }, "lease written again");
    this.fault = undefined;
  }
}
