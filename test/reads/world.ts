import { type ResourceVersion, resourceVersion } from "../../runtime/base/resource-version.ts";
import { type Delivery, type Outcome, run } from "../../runtime/engine/delivery/delivery.ts";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import type { ListReceiver, Subscriber } from "../../runtime/informer/fanout/subscriber.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import type { Change, ObjectMeta } from "../../runtime/informer/scan/change.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { FreshRunner } from "../../runtime/reads/fresh-runner.ts";
import { Reads } from "../../runtime/reads/reads.ts";
import { promisedRunner } from "../engine/promised-runner.ts";
import { UnsteadyCluster } from "../informer/unsteady-cluster.ts";
import { Dice } from "../laws/random.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { read, reading } from "./manifest.ts";

const spec = { apiVersion: "v1", kind: "ConfigMap" };

type Told = Pick<Delivery, "type" | "resourceVersion"> & { readonly meta: ObjectMeta; readonly found: boolean };

/** A minimal trigger: delivers changes, and objects in a list that it did not know. */
class Teller implements Subscriber {
  readonly id: string;
  resumeFrom: ResourceVersion | undefined;
  readonly congested = undefined;
  private known = new Map<string, ObjectMeta>();
  private readonly tell: (told: Told) => void;

  constructor(id: string, at: number | undefined, tell: (told: Told) => void) {
    this.id = id;
    this.resumeFrom = at === undefined ? undefined : resourceVersion(String(at));
    this.tell = tell;
  }

  change({ type, meta }: Change): void {
    if (type === "Deleted") this.known.delete(meta.name);
    else this.known.set(meta.name, meta);
    this.tell({ type, meta, resourceVersion: meta.resourceVersion, found: false });
  }

  bookmark(): void {}

  list(): ListReceiver {
    const listed = new Map<string, ObjectMeta>();
    return {
      item: ({ meta }) => void listed.set(meta.name, meta),
      end: () => {
        const before = this.known;
        this.known = listed;
        for (const [name, meta] of listed)
          if (before.get(name)?.resourceVersion !== meta.resourceVersion) this.found("Modified", meta);
        for (const [name, meta] of before) if (!listed.has(name)) this.found("Deleted", meta);
        return "counted";
      },
      abort: () => {},
    };
  }

  private found(type: Told["type"], meta: ObjectMeta): void {
    this.tell({ type, meta, resourceVersion: meta.resourceVersion, found: true });
  }
}

/** Compares the results of `ctx.cache` with the changes of the cluster. */
export interface ReadsWorld {
  readonly broken: readonly string[];
  readonly runs: number;
  readonly waited: number;
  readonly lists: number;
}

/** Functions that read the objects of their triggers, on a cluster with a short history and connections that break. */
export async function runReadsWorld(seed: number): Promise<ReadsWorld> {
  const dice = new Dice(seed);
  const clock = new VirtualClock();
  const cluster = new UnsteadyCluster(clock, dice);
  let lists = 0;
  const watches = new Informers({
    transport: cluster,
    discovery: new Discovery(cluster, clock),
    clock,
    random: dice.next,
    observer: { ...silentObserver, listed: () => void lists++ },
  });
  const broken: string[] = [];
  const reads = new Reads({
    watches,
    clock,
    specOf: () => spec,
    limit: 1 << 30,
    refused: () => broken.push("refused"),
  });
  const look = (): { at: number; objects: Map<string, number> } => {
    const { items, resourceVersion: at } = JSON.parse(reads.list("f", spec)) as {
      items: { metadata: { name: string; resourceVersion: string } }[];
      resourceVersion: string;
    };
    return { at: Number(at), objects: new Map(items.map(({ metadata: it }) => [it.name, Number(it.resourceVersion)])) };
  };
  const isWhole = () => {
    if (!reads.of("f")?.isReady) return;
    const { at, objects } = look();
    const [told, is] = [objects, cluster.at(at)].map((each) => JSON.stringify([...each].sort()));
    if (told !== is) broken.push(`shows ${told} at ${at}, where there is ${is}`);
  };
  let [runs, waited, told] = [0, 0, 0];
  const handle = (delivery: Delivery): Outcome => {
    runs++;
    if (!reads.of("f")?.isReady) broken.push(`${delivery.id} runs before the first list`);
    isWhole();
    const { at, objects } = look();
    const version = Number(delivery.resourceVersion);
    const shown = objects.get(delivery.object.name);
    if (at < version) broken.push(`${delivery.id}@${version} runs at ${at}`);
    if (delivery.type === "Deleted" && shown !== undefined && shown <= version)
      broken.push(`${delivery.id} is deleted at ${version}, and shown as of ${shown}`);
    return { type: "ok", durationMs: 0 };
  };
  const runner = new FreshRunner(promisedRunner(handle), reads, clock);
  /** Repeats failed deliveries, as the dispatcher does. */
  const give = async (delivery: Delivery): Promise<void> => {
    const outcome = await run(runner, delivery);
    if (outcome.type === "failed" && outcome.error.code === "WF_READS_BEHIND") return give(delivery);
    if (outcome.type !== "ok") broken.push(`${delivery.id} ends as ${outcome.type}`);
  };
  const tell = ({ type, meta, resourceVersion: version, found }: Told) => {
    const before = runs;
    const delivery: Delivery = {
      function: "f",
      trigger: "t",
      id: `d${++told}`,
      type,
      object: { apiVersion: "v1", kind: "ConfigMap", ...meta },
      resourceVersion: version,
      attempt: 1,
      redelivered: false,
      flags: found ? { synthetic: true, reason: "relist" } : {},
      body: Buffer.alloc(0),
      timeoutMs: 1000,
    };
    void give(delivery);
    if (runs === before) waited++;
  };
  const manifest = reading([read()]);
  const begin = () => reads.set({ ...manifest });
  const places = new Set<{ close(): Promise<void> }>();
  const join = () => {
    const at = dice.chance(0.4) ? undefined : 1 + dice.below(cluster.newest);
    places.add(watches.subscribe(spec, new Teller(`t${places.size}`, at, tell)));
  };
  if (dice.chance(0.5)) begin();
  join();
  begin();
  for (let step = 0; step < 50; step++) {
    const roll = dice.next();
    if (roll < 0.35) for (let times = 1 + dice.below(4); times > 0; times--) cluster.append();
    else if (roll < 0.45) cluster.compact(dice.below(8));
    else if (roll < 0.52) cluster.breakSome(0.5);
    else if (roll < 0.58) join();
    else if (roll < 0.62) begin();
    else if (roll < 0.72) cluster.bookmarks();
    else await clock.advance(dice.below(dice.chance(0.2) ? 40_000 : 3000));
    isWhole();
  }
  cluster.calm = true;
  for (let seconds = 0; seconds < 900 && (runs < told || look().at < cluster.newest); seconds++) {
    await clock.advance(1000);
    if (seconds % 60 === 59) cluster.append();
    isWhole();
  }
  if (runs < told) broken.push(`${told - runs} events never ran`);
  if (look().at < cluster.newest) broken.push(`it is at ${look().at} at last, and the server at ${cluster.newest}`);
  reads.delete("f");
  await watches.close();
  await clock.advance(40_000);
  if (cluster.streams > 0) broken.push(`${cluster.streams} connections are left at the end`);
  if (clock.timers > 0) broken.push(`${clock.timers} timers are left at the end`);
  return { broken, runs, waited, lists };
}
