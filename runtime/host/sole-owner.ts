import { WatchfireError } from "../base/errors.ts";
import { noSuchFunction } from "../control/no-such-function.ts";
import type { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import type { Candidacy, Elector } from "../lease/elector.ts";
import { openStore } from "../migrate/open-store.ts";
import type { DeadLetterService } from "../observe/control-routes.ts";
import type { Ownership, OwnershipParts } from "./ownership.ts";
import { Partition } from "./partition.ts";
import { recogniseCluster } from "./recognise-cluster.ts";

/** One partition with all functions: of a single process, or of the holder of the Lease. */
export class SoleOwner implements Ownership {
  readonly partitions: ReadonlyMap<number, Partition>;
  readonly owner = undefined;
  readonly owners = [];
  readonly peers = [];
  /** Written here only. */
  delay: string | undefined;
  private readonly parts: OwnershipParts;
  private readonly partition: Partition;
  private readonly journal: Checkpoint | undefined;
  private readonly elector: Elector | undefined;
  private reloading: Promise<void> = Promise.resolve();

  /** @param journal the open journal of a single process */
  constructor(parts: OwnershipParts, journal: Checkpoint | undefined) {
    this.journal = journal;
    const { options, components, source, onLost } = parts;
    this.parts = parts;
    this.elector = components.elector;
    this.partition = new Partition({ options, components, source: () => source, onLost });
    this.partitions = new Map([[0, this.partition]]);
  }

  get names(): readonly string[] {
    const { all, rejected } = this.partition.live;
    return [...all.map(({ name }) => name), ...rejected.map(({ name, file }) => name ?? file)];
  }

  get holds(): boolean {
    return this.elector?.holds ?? true;
  }

  get missing(): string | undefined {
    if (this.partition.active) return undefined;
    return this.standing?.obstacle ?? "the Lease has not been seen yet, or its checkpoints are being opened";
  }

  get isStandby(): boolean {
    return !this.partition.active && this.elector?.candidacy !== undefined;
  }

  slotsOf(): readonly number[] {
    return [0];
  }

  originOf(): undefined {
    return undefined;
  }

  elsewhere(): undefined {
    return undefined;
  }

  absent(name: string, asked: string): WatchfireError {
    return this.partition.active && this.holds ? noSuchFunction(name, this.names) : this.standby(asked);
  }

  get deadLetters(): DeadLetterService {
    if (this.partition.active && this.holds) return this.partition.active.deadLetters;
    throw this.standby("the dead letters are");
  }

  describe() {
    const { standing: lease } = this;
    return lease ? { lease } : {};
  }

  async prepare(): Promise<void> {
    if (this.journal) await this.partition.open(this.journal);
  }

  async begin(url: string, start: AbortSignal): Promise<void> {
    const { options, dataDir, stopping } = this.parts;
    const { elector } = this;
    const signal = AbortSignal.any([start, stopping]);
    if (!elector) {
      dataDir.takeOver(url);
      const cluster = await recogniseCluster(options, start, this.waiting);
      if (cluster !== undefined && this.partition.active) await claimCluster(this.partition.active.store, cluster);
      return this.readFirst(signal);
    }
    dataDir.announce(url);
    this.reloading = this.read(signal).catch(() => undefined);
    void this.partition.begin((until) => this.campaign(elector, url, until), signal);
  }

  reload(): Promise<void> {
    const { options, stopping } = this.parts;
    this.reloading = this.reloading
      .then(() => this.read(stopping))
      .catch((error: unknown) => {
        if (!this.partition.isEnding) options.log.error({ error: String(error) }, "reload failed");
      });
    return this.reloading;
  }

  drain(): Promise<boolean | undefined> {
    return this.partition.drain();
  }

  async halt(): Promise<void> {
    await this.partition.ended;
  }

  async close(): Promise<void> {
    await this.elector?.release();
  }

  private readonly waiting = (why: string | undefined): void => {
    this.delay = why;
  };

  /** Waits for the Lease, and starts. */
  private async campaign(elector: Elector, url: string, signal: AbortSignal): Promise<void> {
    const { waiting, partition, parts } = this;
    const { options, dataDir, onLost } = parts;
    await elector.campaign(signal);
    // Before any journal is opened, because opening one on NATS fences its owner, even in another cluster.
    const cluster = await recogniseCluster(options, signal, waiting);
    const store = await openStore({ ...options, ...options.election, cluster, waiting, onLost }, elector, signal);
    await this.reloading;
    await partition.open(store, cluster);
    dataDir.takeOver(url);
    options.log.info({ fence: elector.fence?.number }, "active");
    await this.readFirst(signal);
  }

  /**
   * Reads the functions for the first time, after a change reported earlier, because an older read must not follow a newer one.
   */
  private async readFirst(signal: AbortSignal): Promise<void> {
    const first = this.reloading.then(() => this.read(signal));
    this.reloading = first.catch(() => undefined);
    await first;
  }

  private async read(signal: AbortSignal): Promise<void> {
    await this.partition.live.read(signal);
    if (this.partition.live.loaded) this.parts.known();
  }

  /** The candidacy in `/status`: of a standby, or of the Lease's holder that has not started yet. */
  private get standing(): Candidacy | undefined {
    const { elector, delay } = this;
    if (delay === undefined || !elector?.holds) return elector?.standing;
    return { holder: this.parts.options.election?.identity ?? "", obstacle: elector.unwritten?.message ?? delay };
  }

  private standby(asked: string): WatchfireError {
    const holder = this.elector?.candidacy?.holder;
    return new WatchfireError("WF_LEASE_STANDBY", { what: `${asked} with ${holder || "the active one"}` });
  }
}
