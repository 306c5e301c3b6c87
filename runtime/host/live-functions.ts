import { pause } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { FunctionOffer, FunctionSource, RejectedOffer } from "../catalog/function-source.ts";
import { mayBeUnread } from "../catalog/shared-source.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { RefusalLog, type RefusedFunction } from "../observe/refusal-log.ts";
import type { ActiveComponents, RuntimeOptions } from "./components.ts";
import { LiveFunction, type Occasion } from "./live-function.ts";

/** How long a read of the functions waits for one to start, in milliseconds: four times what it takes on a busy machine. */
const slowOfferMs = 2_000;

interface LiveFunctionsOptions
  extends Pick<
    RuntimeOptions,
    "functions" | "transport" | "accounts" | "namespace" | "localEnv" | "clock" | "random" | "log"
  > {
  readonly source: FunctionSource;
  /** Returns `undefined` on a standby, which reads its functions and starts nothing. */
  readonly active: () => ActiveComponents | undefined;
}

/** The running functions of one partition. Each read of the source starts, updates and stops functions. */
export class LiveFunctions {
  private readonly options: LiveFunctionsOptions;
  private readonly live = new Map<string, LiveFunction>();
  private readonly refusals: RefusalLog;
  private offers: readonly FunctionOffer[] = [];
  private refused: readonly RejectedOffer[] = [];
  private isComplete = false;
  unreadNamespaces: readonly string[] = [];
  private isLoaded = false;
  private frozen = false;

  constructor(options: LiveFunctionsOptions) {
    this.options = options;
    this.refusals = new RefusalLog(options.log);
  }

  /** The started functions. */
  get all(): readonly LiveFunction[] {
    return [...this.live.values()];
  }

  get(name: string): LiveFunction | undefined {
    return this.live.get(name);
  }

  /** Manifests of the functions that can run, also on a standby. */
  get offered(): readonly FunctionManifest[] {
    return this.offers.map(({ manifest }) => manifest);
  }

  get rejected(): readonly RejectedOffer[] {
    return this.refused;
  }

  /** True if the last read would have returned a function of this name, if there is one. */
  isKnown(functionName: string): boolean {
    return this.isComplete && !mayBeUnread(this, functionName);
  }

  /** True once the functions were started for the first time. */
  get loaded(): boolean {
    return this.isLoaded;
  }

  /** Starts nothing more. */
  freeze(): void {
    this.frozen = true;
    for (const liveFunction of this.live.values()) liveFunction.freeze();
  }

  /** Starts new functions, updates changed ones, stops removed ones. */
  async read(signal: AbortSignal): Promise<void> {
    if (this.frozen) return;
    const set = await this.options.source.read(signal);
    const { functions, rejected, withheld = [], faults, complete } = set;
    if (this.frozen) return;
    this.offers = functions;
    const active = this.options.active();
    const mended = new Set(functions.filter(({ manifest: { name, file } }) => this.refusals.has(name, file)));
    const kept = this.refuse(functions, rejected, faults);
    if (!active) return;
    // A faulty manifest is not a removal: the running version and its checkpoints stay.
    const refused = rejected.map(({ name }) => name);
    const present = new Set([...functions.map(({ manifest }) => manifest.name), ...refused, ...withheld, ...kept]);
    if (complete) {
      const gone = this.all.filter(({ name }) => !present.has(name) && !mayBeUnread(set, name));
      await Promise.all(gone.map((each) => this.remove(each, this.successor(each, functions))));
    }
    await Promise.all(functions.map((offer) => this.offer(active, offer, mended.has(offer) ? "mended" : "added")));
    if (complete) await active.dispatcher.retireOthers((name) => present.has(name) || mayBeUnread(set, name));
    this.isComplete = complete;
    this.unreadNamespaces = set.unreadNamespaces ?? [];
    this.isLoaded = true;
  }

  /** Keeps the running version of functions whose manifest is faulty. Returns the names of these functions. */
  private refuse(
    functions: readonly FunctionOffer[],
    rejected: readonly RejectedOffer[],
    faults: readonly WatchfireError[],
  ): string[] {
    const declared = [...functions.map(({ manifest }) => manifest), ...rejected];
    const refused = rejected.map((each) => ({ each, running: this.runningOf(each, declared) }));
    for (const { each, running } of refused) for (const liveFunction of running) liveFunction.refuse(each.faults);
    this.refused = refused.flatMap(({ each, running }) => (running.length === 0 ? each : []));
    const others: RefusedFunction[] = [...this.refused];
    if (faults.length > 0) others.push({ name: undefined, file: this.options.functions ?? "", faults, isFolder: true });
    this.refusals.logNew(others);
    return refused.flatMap(({ running }) => running.map(({ name }) => name));
  }

  /**
   * Returns the running functions that a manifest concerns: the one of its name or, if the name is wrong or another file's, those
   * that its file declared before.
   */
  private runningOf(
    { name, file }: RejectedOffer,
    declared: readonly Pick<RejectedOffer, "name" | "file">[],
  ): readonly LiveFunction[] {
    const named = name === undefined ? undefined : this.live.get(name);
    if (named && (named.manifest.file === file || declared.every((each) => each.file !== named.manifest.file))) {
      return [named];
    }
    const names = new Set(declared.map((each) => each.name));
    return this.all.filter((each) => each.manifest.file === file && !names.has(each.name));
  }

  /** Returns the one new function that the file declares instead of an earlier one. */
  private successor({ manifest: { file } }: LiveFunction, functions: readonly FunctionOffer[]): string | undefined {
    const fresh = functions.filter(({ manifest }) => manifest.file === file && !this.live.has(manifest.name));
    return fresh.length === 1 ? fresh[0]?.manifest.name : undefined;
  }

  private async offer(components: ActiveComponents, offer: FunctionOffer, occasion: Occasion): Promise<void> {
    if (this.frozen) return;
    const { manifest } = offer;
    const existing = this.live.get(manifest.name);
    const { transport, accounts, namespace, localEnv, clock, random, log } = this.options;
    const liveFunction =
      existing ??
      new LiveFunction(offer, { ...components, transport, accounts, namespace, localEnv, clock, random, log });
    this.live.set(manifest.name, liveFunction);
    const offered = existing ? liveFunction.update(offer) : liveFunction.start(this.isLoaded ? occasion : "start");
    // Must not hold up readiness of the others or the next read: a function that waits for a Secret or a right, or a build that
    // takes long.
    if (manifest.env.length === 0 && !accounts) await Promise.race([offered, pause(clock, slowOfferMs)]);
  }

  private async remove(liveFunction: LiveFunction, successor: string | undefined): Promise<void> {
    const { name } = liveFunction;
    await liveFunction.stop({ retire: true });
    this.live.delete(name);
    if (successor === undefined) this.options.log.info({ function: name }, "function removed");
    else this.options.log.info({ function: name, successor }, "function removed, its manifest has another name now");
  }
}
