import { type ResourceVersion, resourceVersion } from "../../runtime/base/resource-version.ts";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import type { ListReason, ListReceiver, Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { Informers, type Watch } from "../../runtime/informer/informers.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { Dice } from "../laws/random.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { type Revision, UnsteadyCluster } from "./unsteady-cluster.ts";

const spec = { apiVersion: "v1", kind: "ConfigMap" };

/** Compares what it receives with the changes of the cluster, and records every violation. */
class Witness implements Subscriber {
  readonly id: string;
  readonly broken: string[] = [];
  /** Number of complete lists. */
  lists = 0;
  /** The revision up to which it has received everything. */
  at: number | undefined;
  /** True if it doubts the end of the next list. */
  doubts = false;
  gone = false;
  readonly congested = undefined;
  private readonly cluster: UnsteadyCluster;
  private readonly wanted: ReadonlySet<string> | undefined;
  /** True after a failed or doubted list, which must be followed by another list. */
  private owed = false;
  private listing = false;

  /** @param wanted namespaces; undefined: all */
  constructor(id: string, cluster: UnsteadyCluster, at: number | undefined, wanted?: ReadonlySet<string>) {
    this.id = id;
    this.cluster = cluster;
    this.at = at;
    this.wanted = wanted;
  }

  wants(namespace: string): boolean {
    return this.wanted?.has(namespace) ?? true;
  }

  get resumeFrom(): ResourceVersion | undefined {
    return this.at === undefined ? undefined : resourceVersion(String(this.at));
  }

  change({ type, meta }: Change): void {
    const what = `${type} ${meta.name}@${meta.resourceVersion}`;
    const { at = this.cluster.newest } = this;
    // A change that it does not want may be delivered or not.
    const isNext = ({ version, namespace }: Revision) =>
      this.wants(namespace) || (!this.wants(meta.namespace) && version === Number(meta.resourceVersion));
    const next = this.cluster.log.slice(at).find(isNext);
    const expected = next && `${next.type} ${next.name}@${next.version}`;
    if (this.gone) this.break(`hears ${what} after it left`);
    if (this.listing) this.break(`hears ${what} in the middle of a list`);
    if (what !== expected) this.break(`hears ${what} at ${this.at}, where ${expected} comes next`);
    this.at = Number(meta.resourceVersion);
  }

  bookmark(version: ResourceVersion): void {
    if (this.at === undefined || Number(version) < this.at) this.break(`hears bookmark ${version} at ${this.at}`);
    if (Number(version) !== this.at) this.at = this.passed(Number(version));
  }

  list(reason: ListReason, gapFrom: ResourceVersion | undefined): ListReceiver {
    const { cluster, at } = this;
    if (this.listing) this.break("is given a list in the middle of another");
    if (reason !== (at === undefined ? "initial" : "relist")) this.break(`lists for ${reason} at ${at}`);
    if (gapFrom !== this.resumeFrom) this.break(`lists from ${gapFrom} at ${at}`);
    const kept = at !== undefined && at >= cluster.compacted;
    if (kept && !this.owed) this.break(`lists at ${at}, and the server's history begins at ${cluster.compacted}`);
    this.listing = true;
    const items = new Map<string, number>();
    return {
      item: ({ meta }) => void items.set(meta.name, Number(meta.resourceVersion)),
      end: (version) => this.end(Number(version), items),
      abort: () => {
        this.listing = false;
        this.owed = true;
      },
    };
  }

  private end(version: number, items: Map<string, number>): "counted" | "held" {
    const told = JSON.stringify([...items].sort());
    const is = JSON.stringify([...this.cluster.at(version)].sort());
    if (told !== is) this.break(`lists ${told} at ${version}, where there is ${is}`);
    if (this.at !== undefined && version < this.at) this.break(`lists ${version} at ${this.at}`);
    this.listing = false;
    this.owed = this.doubts;
    if (this.doubts) {
      this.doubts = false;
      return "held";
    }
    this.lists++;
    this.at = version;
    return "counted";
  }

  /** Checks that a bookmark does not pass an undelivered change. */
  private passed(version: number): number {
    const missed = this.cluster.log.slice(this.at ?? 0, version).filter(({ namespace }) => this.wants(namespace));
    if (missed.length > 0) this.break(`a bookmark at ${version} passes ${missed.length} changes after ${this.at}`);
    return version;
  }

  private break(law: string): void {
    this.broken.push(`${this.id} ${law}`);
  }
}

/** Results of a world: the broken laws and the amount of work. */
export interface SharingWorld {
  readonly broken: readonly string[];
  readonly lists: number;
  /** Number of changes that the server skipped. */
  readonly spared: number;
}

/** Several subscribers of one source on a cluster with a short history. `choosy`: each wants only some namespaces. */
export async function runSharingWorld(seed: number, choosy = false): Promise<SharingWorld> {
  const dice = new Dice(seed);
  const clock = new VirtualClock();
  const cluster = new UnsteadyCluster(clock, dice);
  const watches = new Informers({
    transport: cluster,
    discovery: new Discovery(cluster, clock),
    clock,
    random: dice.next,
    observer: silentObserver,
  });
  const all: Witness[] = [];
  const places = new Map<Witness, Watch>();
  const join = () => {
    const at = dice.chance(0.4) ? undefined : 1 + dice.below(cluster.newest);
    const wanted = choosy ? new Set([`team-${dice.below(4)}`, `team-${dice.below(4)}`]) : undefined;
    const witness = new Witness(`n${all.length}`, cluster, at, wanted);
    witness.doubts = dice.chance(0.1);
    all.push(witness);
    places.set(witness, watches.subscribe(spec, witness));
  };
  const leave = () => {
    if (places.size < 2) return;
    const [witness, place] = dice.pick([...places]);
    places.delete(witness);
    void place.close();
    witness.gone = true;
  };
  join();
  for (let step = 0; step < 50; step++) {
    const roll = dice.next();
    if (roll < 0.35) for (let times = 1 + dice.below(4); times > 0; times--) cluster.append();
    else if (roll < 0.45) cluster.compact(dice.below(8));
    else if (roll < 0.52) cluster.breakSome(0.5);
    else if (roll < 0.62) join();
    else if (roll < 0.67) leave();
    else if (roll < 0.72) cluster.bookmarks();
    else await clock.advance(dice.below(dice.chance(0.2) ? 40_000 : 3000));
  }
  cluster.calm = true;
  const here = [...places.keys()];
  const behind = () => here.filter(({ at }) => at !== cluster.newest);
  for (let seconds = 0; seconds < 600 && (behind().length > 0 || cluster.streams > 1); seconds++) {
    await clock.advance(1000);
    if (seconds % 60 === 59) cluster.append();
    // Skipped changes advance the position only by bookmarks.
    if (choosy && seconds % 60 === 29) cluster.bookmarks();
  }
  const broken = all.flatMap((witness) => witness.broken);
  for (const { id, at } of behind()) broken.push(`${id} is at ${at} at last, and the server at ${cluster.newest}`);
  if (cluster.streams > 1) broken.push(`${cluster.streams} connections stream at last`);
  await watches.close();
  if (cluster.streams > 0) broken.push(`${cluster.streams} connections are left at the end`);
  if (clock.timers > 0) broken.push(`${clock.timers} timers are left at the end`);
  return { broken, lists: all.reduce((sum, { lists }) => sum + lists, 0), spared: cluster.spared };
}
