import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { noResourceVersion } from "../base/resource-version.ts";
import type { SourceState, SourceStatus } from "../informer/fanout/observer.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { ListReceiver, Subscriber } from "../informer/fanout/subscriber.ts";
import type { Informers, Watch } from "../informer/informers.ts";
import type { Change, ObjectMeta } from "../informer/scan/change.ts";
import type { Logger } from "../observe/log.ts";
import { DeployedSet, type SetRoom, type TakenRevision } from "./deployed-set.ts";
import type { FunctionOffer, FunctionSet, FunctionSource, RejectedOffer } from "./function-source.ts";
import { HeldConfigMaps, heldLimit } from "./held-config-maps.ts";
import type { IndexTrust } from "./index-trust.ts";
import { defaultSet, selectorOf } from "./names.ts";

/** Interval at which the informer's state is checked while waiting for the first list, in milliseconds. */
const lookMs = 250;

/** States in which the informer has explained why it cannot list. */
const explained: ReadonlySet<SourceState> = new Set(["missing", "forbidden", "degraded"]);

/** Most sets of a namespace with limits: each is compared with all others. */
const mostSets = 100;

/** With limits, the shortest rest after a look, as a multiple of the time that the look took. */
const restPerLook = 20;

const nothing = { functions: [], rejected: [], faults: [] } as const;

/** Limits of the sets of one namespace, together. */
export interface SetLimits {
  readonly functions: number;
  /** Limit of the sum of their `resources.memory`, in bytes. */
  readonly memoryBytes: number;
  /** Limit of their code, unpacked, in bytes. */
  readonly codeBytes: number;
  /** Limit of their trust groups, each of which takes a process. */
  readonly groups: number;
  /** Limit of their ConfigMaps, in bytes. */
  readonly heldBytes: number;
  /** Shortest time between two looks at what was deployed, in milliseconds. */
  readonly restMs: number;
}

/** A deployed set as it is in use. */
export interface SetState {
  readonly name: string;
  /** Number of its revision; `undefined` if a version without revisions deployed it. */
  readonly revision: number | undefined;
  /** Names of its functions in its namespace, those that cannot run included. */
  readonly functions: readonly string[];
  /** Why what was deployed last is not in use. The version before runs on, if there is one. */
  readonly fault: WatchfireError | undefined;
}

interface ClusterSourceOptions {
  readonly watches: Informers;
  /** The namespace of the sets: the runtime's own, or one of those that share the runtime. */
  readonly namespace: string;
  readonly account: string;
  /** Verifies the indexes. Default: every index is accepted. */
  readonly trust?: IndexTrust | undefined;
  /** Default: no limits, except 128 MiB of ConfigMaps that are not opened yet. */
  readonly limits?: SetLimits | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, "error" | "info">;
  /** Called when other functions are available. */
  readonly changed: () => void;
  /** Called when the code of a set is in use. Default: nobody is notified. */
  readonly took?: (revision: TakenRevision) => void;
}

/** The functions of all sets that `watchfire deploy` wrote into a namespace for one runtime. */
export class ClusterSource implements FunctionSource, Subscriber {
  readonly id = "deployed-functions";
  /** Nothing is persisted over a restart, because the cluster has it. */
  readonly resumeFrom = undefined;
  readonly congested = undefined;
  private readonly options: ClusterSourceOptions;
  private readonly spec: SourceSpec;
  private watch: Watch | undefined;
  private readonly held: HeldConfigMaps;
  private readonly heldLimit: number;
  private readonly sets = new Map<string, DeployedSet>();
  private readonly listed = Promise.withResolvers<void>();
  private isListed = false;
  private heldEmpty = false;
  private isResting = false;
  /** How long the last look took, in milliseconds. */
  private lookedMs = 0;
  /** Why some sets are not looked at. */
  private beyond: WatchfireError | undefined;
  /** Functions of all sets in use, and the first that is in two of them. */
  private merged: FunctionSet = { ...nothing, complete: false };
  private twice: WatchfireError | undefined;

  constructor(options: ClusterSourceOptions) {
    this.options = options;
    const { namespace, account } = options;
    this.heldLimit = options.limits?.heldBytes ?? heldLimit;
    this.held = new HeldConfigMaps(account, this.heldLimit, options.limits !== undefined);
    this.spec = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: selectorOf(account) };
  }

  get trouble(): WatchfireError | undefined {
    const faults = [...this.sets.values()].map(({ fault }) => fault);
    return faults.find((fault) => fault !== undefined) ?? this.unread ?? this.beyond ?? this.twice;
  }

  /** The sets that have functions, or a fault. `undefined` before the first list. */
  get states(): readonly SetState[] | undefined {
    if (!this.isListed) return undefined;
    const { functions, rejected } = this.merged;
    const all = [...functions.map(({ manifest: { name }, origin }) => ({ name, origin })), ...rejected];
    const names = Map.groupBy(all, ({ origin }) => (origin.type === "config-map" ? origin.set : ""));
    return [...this.sets].flatMap(([name, set]) => {
      if (set.isEmpty) return [];
      const { revision } = set.taken ?? {};
      return {
        name,
        revision,
        fault: set.fault,
        functions: (names.get(name) ?? []).flatMap((each) => each.name ?? []),
      };
    });
  }

  /** Why the deployed set is unknown, if it is. The set in use keeps running. */
  private get unread(): WatchfireError | undefined {
    const source = this.status;
    if (!source || !explained.has(source.state)) return undefined;
    const { namespace } = this.options;
    const what = `the deployed functions cannot be read from the ConfigMaps of ${namespace}: ${source.message ?? source.state}`;
    return new WatchfireError(source.state === "forbidden" ? "WF_KUBE_FORBIDDEN" : "WF_KUBE_PROTOCOL", { what });
  }

  /** The first call begins to watch. It waits for the first list, or for the informer's reason why there is no list. */
  async read(signal: AbortSignal): Promise<FunctionSet> {
    this.watch ??= this.options.watches.subscribe(this.spec, this);
    while (!this.isListed && !explained.has(this.state)) {
      await Promise.race([this.listed.promise, pause(this.options.clock, lookMs, signal)]);
    }
    // An unreadable set may contain any function, so no function counts as removed.
    return this.merged;
  }

  change({ type, meta, body }: Change): void {
    this.held.drop(meta.name);
    if (type !== "Deleted") this.held.hold(meta, body);
    if (this.isListed) this.considerSoon();
  }

  bookmark(): void {}

  list(): ListReceiver {
    const found = new Map<string, ObjectMeta>();
    const bodies = new Map<string, Buffer>();
    let bytes = 0;
    return {
      item: ({ meta, body }) => {
        found.set(meta.name, meta);
        if (this.held.has(meta)) return;
        bytes += body.length;
        bodies.set(meta.name, bytes <= this.heldLimit ? Buffer.from(body) : Buffer.alloc(0));
      },
      end: () => {
        // A server with an empty cache reports no objects; that is believed only when reported twice.
        if (found.size === 0 && this.held.size > 0 && !this.heldEmpty) {
          this.heldEmpty = true;
          return "held";
        }
        this.heldEmpty = false;
        for (const name of this.held.names()) if (!found.has(name) || bodies.has(name)) this.held.drop(name);
        for (const [name, body] of bodies)
          this.held.hold(found.get(name) ?? { name, resourceVersion: noResourceVersion }, body);
        this.consider();
        this.isListed = true;
        this.listed.resolve();
        return "counted";
      },
      abort: () => {},
    };
  }

  private get state(): SourceState {
    return this.status?.state ?? "discovering";
  }

  private get status(): SourceStatus | undefined {
    const key = sourceKey(this.spec);
    return this.options.watches.status().find((source) => sourceKey(source) === key);
  }

  /** Considers what has changed: at once, or after a rest if there are limits. */
  private considerSoon(): void {
    const { clock, limits } = this.options;
    if (this.isResting) return;
    if (!limits) {
      this.consider();
      return;
    }
    this.isResting = true;
    const look = () => {
      this.isResting = false;
      const from = clock.monotonic();
      this.consider();
      this.lookedMs = clock.monotonic() - from;
    };
    // Whatever a team writes, looking at it takes a twentieth of the runtime's time.
    clock.after(Math.max(limits.restMs, restPerLook * this.lookedMs), look, { unref: true });
  }

  /** Considers every set, and merges their functions if those of any have changed. */
  private consider(): void {
    const { account, trust, log, took, limits } = this.options;
    const roomFor = (set: string) => limits && (() => this.room(limits, set));
    const { held, sets } = this;
    const { indexed, populated } = held.sets();
    const names = new Set([defaultSet, ...indexed, ...populated, ...(trust?.seen ?? [])]);
    this.beyond = undefined;
    for (const name of names) {
      if (sets.has(name)) continue;
      if (limits && sets.size >= mostSets) this.beyond ??= beyondFault(name, this.options.namespace);
      else
        sets.set(name, new DeployedSet({ name, account, held, trust, log, took, room: roomFor(name) }, this.isListed));
    }
    let changed = false;
    let again: boolean;
    do {
      again = false;
      for (const [name, set] of sets) again = set.consider(populated.has(name)) || again;
      changed ||= again;
      // Another set may have waited for the room that one leaves.
    } while (again && limits);
    for (const [name, set] of sets) if (!names.has(name) && set.isEmpty) sets.delete(name);
    held.forgetOpened(new Set([...sets.values()].flatMap(({ wanted }) => wanted)));
    if (!changed) return;
    this.merge();
    this.options.changed();
  }

  /** Returns what the other sets leave of the limits. */
  private room({ functions, memoryBytes, codeBytes, groups }: SetLimits, set: string): SetRoom {
    const others = [...this.sets].flatMap(([name, { taken }]) => (name === set || !taken ? [] : taken));
    const sum = (of: (taken: (typeof others)[number]) => number) => others.reduce((all, each) => all + of(each), 0);
    return {
      namespace: this.options.namespace,
      functions: functions - sum((each) => each.functions.length + each.rejected.length),
      memoryBytes:
        memoryBytes -
        sum((each) =>
          each.functions.reduce(
            (all, { manifest, canary }) =>
              all + manifest.resources.memoryBytes + (canary?.manifest.resources.memoryBytes ?? 0),
            0,
          ),
        ),
      codeBytes: codeBytes - sum((each) => each.codeBytes),
      mostGroups: groups,
      groups: new Set(others.flatMap((each) => each.functions.map(({ manifest }) => manifest.trustGroup))),
    };
  }

  /** If two sets have one function, that of the set whose name is first is used; `default` is last. */
  private merge(): void {
    const sets = [...this.sets.keys()].sort((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
    const owners = new Map<string, string>();
    const functions: FunctionOffer[] = [];
    const rejected: RejectedOffer[] = [];
    let twice: WatchfireError | undefined;
    for (const set of sets) {
      const { taken, refused = [] } = this.sets.get(set) ?? {};
      const names = new Set(refused.map(({ name }) => name));
      const isFirst = (name = "") => {
        const owner = owners.get(name);
        if (owner !== undefined && !taken?.unlabelled) twice ??= twiceFault(name, owner, set);
        if (owner === undefined) owners.set(name, set);
        return owner === undefined;
      };
      // A refused change leaves the version before it running.
      const used = (taken?.functions ?? []).filter(({ manifest }) => !names.has(manifest.name));
      functions.push(...used.filter(({ manifest }) => isFirst(manifest.name)));
      const others = (taken?.rejected ?? []).filter(({ name }) => !names.has(name));
      rejected.push(...[...refused, ...others].filter(({ name }) => isFirst(name)));
    }
    // A set that was never read may contain any function, so no function counts as removed.
    const complete = [...this.sets.values()].every(({ taken }) => taken !== undefined);
    this.merged = { functions, rejected, faults: [], complete };
    this.twice = twice;
  }
}

const rankOf = (set: string): number => (set === defaultSet ? 1 : 0);

const beyondFault = (set: string, namespace: string): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_LIMIT", {
    what: `the set ${set} is one more than the ${mostSets} sets that namespace ${namespace} may have`,
  });

function twiceFault(name: string, owner: string, other: string): WatchfireError {
  return new WatchfireError("WF_DEPLOYED_TAKEN", {
    what: `the function ${name} is in the sets ${owner} and ${other}; that of ${owner} runs`,
    hint: "rename one of the two and deploy its set again",
  });
}
