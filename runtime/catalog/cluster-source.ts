import { type Clock, pause } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { noResourceVersion, type ResourceVersion } from "../base/resource-version.ts";
import type { SourceState, SourceStatus } from "../informer/fanout/observer.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { ListReceiver, Subscriber } from "../informer/fanout/subscriber.ts";
import type { Informers, Watch } from "../informer/informers.ts";
import type { Change, ObjectMeta } from "../informer/scan/change.ts";
import type { Logger } from "../observe/log.ts";
import { type ConfigMap, readConfigMap } from "./config-map.ts";
import { type IndexEntry, isUnset, readIndex } from "./deployed-index.ts";
import type { FunctionSet, FunctionSource } from "./function-source.ts";
import type { IndexTrust } from "./index-trust.ts";
import { indexName, selectorOf } from "./names.ts";
import { type OpenedFunction, openFunction } from "./opened-function.ts";
import { placeOf } from "./packed-function.ts";

/** Limit of the memory for labelled ConfigMaps that are not opened yet, in bytes: a hundred of the largest. */
const heldLimit = 128 * 1024 * 1024;

/** Interval at which the informer's state is checked while waiting for the first list, in milliseconds. */
const lookMs = 250;

/** States in which the informer has explained why it cannot list. */
const explained: ReadonlySet<SourceState> = new Set(["missing", "forbidden", "degraded"]);

const nothing = { functions: [], rejected: [], faults: [] } as const;

interface ClusterSourceOptions {
  readonly watches: Informers;
  /** The runtime's own namespace. */
  readonly namespace: string;
  readonly account: string;
  /** Verifies an index. Default: every index is accepted. */
  readonly trust?: IndexTrust | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, "error" | "info">;
  /** Called when another set is available. */
  readonly changed: () => void;
}

/** One ConfigMap with our label, as last received. */
interface Held {
  readonly resourceVersion: ResourceVersion;
  /** Absent once it has been opened, and if too much is held. */
  readonly body?: Buffer;
  /** The opened function, for an entry of the index. */
  readonly opened?: { readonly entry: IndexEntry; readonly as: OpenedFunction };
}

/**
 * The functions that `watchfire deploy` wrote into the runtime's namespace. The index lists the functions of a set. A set is used
 * once each of its ConfigMaps exists and matches the index; until then the previous set stays.
 */
export class ClusterSource implements FunctionSource, Subscriber {
  readonly id = "deployed-functions";
  /** Nothing is persisted over a restart, because the cluster has it. */
  readonly resumeFrom = undefined;
  readonly congested = undefined;
  private readonly options: ClusterSourceOptions;
  private readonly spec: SourceSpec;
  private watch: Watch | undefined;
  private readonly held = new Map<string, Held>();
  private heldBytes = 0;
  private readonly listed = Promise.withResolvers<void>();
  private isListed = false;
  private heldEmpty = false;
  /** The set in use, and whether all of it could be opened. */
  private taken: { readonly set: FunctionSet; readonly whole: boolean; readonly is: string } | undefined;
  private fault: WatchfireError | undefined;

  constructor(options: ClusterSourceOptions) {
    this.options = options;
    const { namespace, account } = options;
    this.spec = { apiVersion: "v1", kind: "ConfigMap", namespace, labelSelector: selectorOf(account) };
  }

  get trouble(): WatchfireError | undefined {
    return this.fault ?? this.unread;
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
    return this.taken?.set ?? { ...nothing, complete: false };
  }

  change({ type, meta, body }: Change): void {
    this.drop(meta.name);
    if (type !== "Deleted") this.hold(meta, body);
    if (this.isListed) this.consider();
  }

  bookmark(): void {}

  list(): ListReceiver {
    const found = new Map<string, ObjectMeta>();
    const bodies = new Map<string, Buffer>();
    let bytes = 0;
    return {
      item: ({ meta, body }) => {
        found.set(meta.name, meta);
        if (this.has(meta)) return;
        bytes += body.length;
        bodies.set(meta.name, bytes <= heldLimit ? Buffer.from(body) : Buffer.alloc(0));
      },
      end: () => {
        // A server with an empty cache reports no objects; that is believed only when reported twice.
        if (found.size === 0 && this.held.size > 0 && !this.heldEmpty) {
          this.heldEmpty = true;
          return "held";
        }
        this.heldEmpty = false;
        for (const name of this.held.keys()) if (!found.has(name) || bodies.has(name)) this.drop(name);
        for (const [name, body] of bodies)
          this.hold(found.get(name) ?? { name, resourceVersion: noResourceVersion }, body);
        this.isListed = true;
        this.consider();
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

  private has({ name, resourceVersion }: ObjectMeta): boolean {
    return this.held.get(name)?.resourceVersion === resourceVersion;
  }

  private hold({ name, resourceVersion }: Pick<ObjectMeta, "name" | "resourceVersion">, body: Buffer): void {
    const fits = this.heldBytes + body.length <= heldLimit;
    if (fits) this.heldBytes += body.length;
    this.held.set(name, { resourceVersion, ...(fits && { body: Buffer.from(body) }) });
  }

  private drop(name: string): void {
    this.heldBytes -= this.held.get(name)?.body?.length ?? 0;
    this.held.delete(name);
  }

  /** Uses the set that the index names now, if it is another one and complete. */
  private consider(): void {
    const entries = this.entries();
    if (!entries) return;
    const is = JSON.stringify(entries);
    const opened = entries.map((entry) => this.open(entry));
    const [damage] = opened.flatMap((each) => (each.type === "damaged" ? each.rejected.faults : []));
    const whole = damage === undefined;
    if (damage) {
      this.say(damage);
      // Without a previous set, each function is used or rejected on its own.
      if (this.taken) return;
    }
    if (whole) this.fault = undefined;
    if (this.taken?.is === is && this.taken.whole) return;
    const set = {
      functions: opened.flatMap((each) => (each.type === "offer" ? each.offer : [])),
      rejected: opened.flatMap((each) => (each.type === "offer" ? [] : each.rejected)),
      faults: [],
      complete: true,
    };
    this.taken = { set, whole, is };
    this.remember();
    this.options.log.info({ functions: entries.length, whole }, "deployed functions loaded");
    this.options.changed();
  }

  /** Records the index, so that no older one is accepted after it. A data folder that cannot be written is reported elsewhere. */
  private remember(): void {
    const { account, trust, log } = this.options;
    const index = parsed(this.held.get(indexName(account))?.body);
    if (!trust || !index || isUnset(index)) return;
    try {
      trust.took(index);
    } catch (error) {
      log.error({ error: String(error) }, "signed deployment not remembered over a restart");
    }
  }

  /** Returns the entries of the index; `undefined` if they are unknown, in which case the set in use stays. */
  private entries(): readonly IndexEntry[] | undefined {
    const { account, trust } = this.options;
    const name = indexName(account);
    const held = this.held.get(name);
    const configMap = parsed(held?.body);
    if (!held || (configMap && isUnset(configMap))) {
      if (trust?.hasSeen) {
        this.say(
          new WatchfireError("WF_DEPLOYED_UNTRUSTED", {
            what: "the signed index is gone",
            place: { file: placeOf(name) },
          }),
        );
        return undefined;
      }
      if (this.held.size === (held ? 1 : 0)) return [];
      // The first deployment is in progress: its index is written last.
      if (this.taken?.is === "[]") {
        this.fault = undefined;
        return undefined;
      }
      this.say(new WatchfireError("WF_DEPLOYED_INDEX", { what: `no ConfigMap ${name} names the functions` }));
      return undefined;
    }
    try {
      if (configMap) {
        trust?.assert(configMap);
        return readIndex(configMap);
      }
      throw new WatchfireError("WF_DEPLOYED_INDEX", { what: `the ConfigMap ${name} cannot be read` });
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      this.say(error);
      return undefined;
    }
  }

  /** Opens an entry once; the result replaces the bytes. */
  private open(entry: IndexEntry): OpenedFunction {
    const held = this.held.get(entry.configMap);
    if (held?.opened && JSON.stringify(held.opened.entry) === JSON.stringify(entry)) return held.opened.as;
    const as = openFunction(entry, parsed(held?.body));
    if (held && as.type !== "damaged") {
      this.drop(entry.configMap);
      this.held.set(entry.configMap, { resourceVersion: held.resourceVersion, opened: { entry, as } });
    }
    return as;
  }

  private say(fault: WatchfireError): void {
    if (fault.message === this.fault?.message) return;
    this.fault = fault;
    const kept = this.taken !== undefined;
    this.options.log.error({ error: fault.message, kept }, "deployment not loaded");
  }
}

function parsed(body: Buffer | undefined): ConfigMap | undefined {
  if (!body) return undefined;
  try {
    return readConfigMap(JSON.parse(body.toString("utf8")));
  } catch {
    return undefined;
  }
}
