import { WatchfireError } from "../../base/errors.ts";
import type { FunctionOffer, FunctionSet, FunctionSource, Origin } from "../../catalog/function-source.ts";
import { isSatisfiedBy, type Sharding, shardIn, shardingOf } from "../../engine/state/sharding.ts";
import { slotOf, slotsOf } from "../../slots/rendezvous.ts";
import type { Shardings } from "./shardings.ts";

/** Returns how a function's checkpoints in a slot are spread. `undefined` without checkpoints. */
export type ShardingLookup = (name: string) => Promise<Sharding | undefined>;

/** All functions of a fleet, read once for all slots of a replica. */
export class Catalogue {
  private readonly source: FunctionSource;
  private readonly slots: number;
  private readonly shardings: Shardings;
  private readonly first = Promise.withResolvers<FunctionSet>();
  private latest: Promise<FunctionSet> = this.first.promise;
  private known: readonly string[] = [];
  private shardedFunctions: readonly string[] = [];
  /** By function, the file that last declared it, even if the function is refused now. */
  private files: ReadonlyMap<string, string> = new Map();
  private origins: ReadonlyMap<string, Origin> = new Map();
  /** Functions whose file now declares another one, which is refused. The running ones continue. */
  private kept: readonly string[] = [];

  constructor(source: FunctionSource, slots: number, shardings: Shardings) {
    this.source = source;
    this.slots = slots;
    this.shardings = shardings;
  }

  /** The names at the last read. */
  get names(): readonly string[] {
    return this.known;
  }

  /** Functions to be spread whose sharding is not agreed yet. */
  get unsettled(): readonly string[] {
    return this.shardedFunctions.filter((name) => !this.shardings.of(name));
  }

  /** Returns the origin of a function's code. `undefined` if nothing declares the function now. */
  originOf(name: string): Origin | undefined {
    return this.origins.get(name);
  }

  /** Returns the slots of a function, its first shard's slot first. */
  slotsOf(name: string): readonly number[] {
    return slotsOf(name, this.shardings.of(name)?.shards ?? 1, this.slots);
  }

  /** Reads all functions again. @throws the signal's reason */
  async read(signal: AbortSignal): Promise<void> {
    const set = await this.source.read(signal);
    this.latest = Promise.resolve(set);
    // Resolves for slots that were taken before.
    this.first.resolve(set);
    this.shardedFunctions = set.functions
      .filter(({ manifest }) => shardingOf(manifest).shards > 1)
      .map(({ manifest }) => manifest.name);
    const refused = set.rejected.flatMap(({ name }) => name ?? []);
    const now = [...set.functions.map(({ manifest }) => manifest.name), ...refused];
    const renamed = set.rejected.filter(({ name = "", file }) => this.files.get(name) !== file).map(({ file }) => file);
    const former = [...this.files].filter(([name, file]) => refused.includes(name) || renamed.includes(file));
    this.files = new Map([...former, ...set.functions.map(({ manifest: { name, file } }) => [name, file] as const)]);
    this.origins = new Map([
      ...set.rejected.flatMap(({ name, origin }) => (name === undefined ? [] : [[name, origin] as const])),
      ...set.functions.map(({ manifest, origin }) => [manifest.name, origin] as const),
    ]);
    this.kept = [...this.files.keys()].filter((name) => !now.includes(name));
    this.known = [...now, ...this.kept];
  }

  /**
   * Returns the source of one slot's functions. Faults without a function's name are reported by the slot that their file maps
   * to.
   */
  of(slot: number, recorded: ShardingLookup): FunctionSource {
    const isFirst = (name: string) => slotOf(name, this.slots) === slot;
    return {
      read: async () => {
        const { functions, rejected, faults, unreadNamespaces = [], complete } = await this.latest;
        for (const { manifest } of functions) if (isFirst(manifest.name)) await this.settle(manifest, recorded);
        const unsettled = new Set(this.unsettled);
        return {
          functions: functions.flatMap((offer) => {
            return unsettled.has(offer.manifest.name) ? [] : this.offerIn(slot, offer);
          }),
          rejected: rejected.filter(({ name, file }) => isFirst(name ?? file)),
          withheld: [...unsettled, ...this.kept, ...rejected.flatMap(({ name }) => name ?? [])],
          faults: isFirst("") ? faults : [],
          unreadNamespaces,
          complete,
        };
      },
    };
  }

  /** Proposes how a function is spread. Done by the slot of its first shard, which has checkpoints of each function. */
  private async settle(manifest: FunctionOffer["manifest"], recorded: ShardingLookup): Promise<void> {
    if (!this.unsettled.includes(manifest.name)) return;
    const sharding = (await recorded(manifest.name)) ?? shardingOf(manifest);
    // An API server that is away is asked again later.
    await this.shardings.propose(manifest.name, sharding).catch(() => undefined);
  }

  private offerIn(slot: number, offer: FunctionOffer): FunctionOffer[] {
    const { manifest } = offer;
    const asked = shardingOf(manifest);
    const sharding = this.shardings.of(manifest.name) ?? asked;
    const shard = shardIn(slot, manifest.name, sharding, this.slots);
    if (!shard) return [];
    return [
      {
        ...offer,
        ...(offer.isGone && { isGone: () => offer.isGone?.() ?? false }),
        bundle: (signal) => offer.bundle(signal),
        ...(shard !== "whole" && { shard }),
        ...(!isSatisfiedBy(asked, sharding) && { refused: otherShards(manifest, asked, sharding) }),
      },
    ];
  }
}

function otherShards({ file }: FunctionOffer["manifest"], asked: Sharding, runs: Sharding): WatchfireError {
  const [path, actual] = differing(asked, runs);
  const by = path === "spec.delivery.shards" ? "" : `, by ${runs.by}`;
  const what = `its checkpoints are in ${runs.shards === 1 ? "one shard" : `${runs.shards} shards${by}`}, and it runs so`;
  return new WatchfireError("WF_LEASE_SHARDS", { what, place: { file }, path, actual });
}

/** Returns the field that asks for another sharding, and its value. */
function differing(asked: Sharding, runs: Sharding): readonly [path: string, actual: string] {
  if (asked.shards !== runs.shards) return ["spec.delivery.shards", String(asked.shards)];
  if (asked.by === "namespace") return ["spec.delivery.shardBy", "Namespace"];
  return runs.by === "namespace" ? ["spec.delivery.shardBy", "Key"] : ["spec.delivery.mode", "Reconcile"];
}
