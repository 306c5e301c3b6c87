import { pause } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { FunctionOffer, FunctionSource, RejectedOffer } from "../catalog/function-source.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { RefusalLog, type RefusedFunction } from "../observe/refusal-log.ts";
import type { ActiveComponents, RuntimeOptions } from "./components.ts";
import { LiveFunction, type Occasion } from "./live-function.ts";

/** How long reading the functions waits for one to be brought, in milliseconds: four times what a busy machine takes. */
const slowBringMs = 2_000;

interface LiveFunctionsOptions
  extends Pick<RuntimeOptions, "functions" | "transport" | "accounts" | "namespace" | "clock" | "random" | "log"> {
  readonly source: FunctionSource;
  /** Undefined on a standby, which reads what it would run, and brings none of it. */
  readonly active: () => ActiveComponents | undefined;
}

/** What a manifest says of itself. */
type Declared = Pick<RejectedOffer, "name" | "file">;

/** The functions of a runtime, as its source had them when it was read last. */
export class LiveFunctions {
  private readonly options: LiveFunctionsOptions;
  private readonly live = new Map<string, LiveFunction>();
  private readonly refusals: RefusalLog;
  private offers: readonly FunctionOffer[] = [];
  private refused: readonly RejectedOffer[] = [];
  private isComplete = false;
  private isLoaded = false;
  private frozen = false;

  constructor(options: LiveFunctionsOptions) {
    this.options = options;
    this.refusals = new RefusalLog(options.log);
  }

  /** Those that were brought. */
  get all(): readonly LiveFunction[] {
    return [...this.live.values()];
  }

  get(name: string): LiveFunction | undefined {
    return this.live.get(name);
  }

  /** Of those that can run, also on a standby. */
  get offered(): readonly FunctionManifest[] {
    return this.offers.map(({ manifest }) => manifest);
  }

  get rejected(): readonly RejectedOffer[] {
    return this.refused;
  }

  /** Whether the functions that were read last are all there are. */
  get complete(): boolean {
    return this.isComplete;
  }

  /** Whether they were brought once. */
  get loaded(): boolean {
    return this.isLoaded;
  }

  /** Brings nothing any more. */
  freeze(): void {
    this.frozen = true;
    for (const liveFunction of this.live.values()) liveFunction.freeze();
  }

  /** Starts what came, takes up what changed, stops what went. */
  async read(signal: AbortSignal): Promise<void> {
    if (this.frozen) return;
    const { functions, rejected, withheld = [], faults, complete } = await this.options.source.read(signal);
    if (this.frozen) return;
    this.offers = functions;
    const active = this.options.active();
    const mended = new Set(functions.filter(({ manifest: { name, file } }) => this.refusals.has(name, file)));
    const kept = this.refuse(functions, rejected, faults);
    if (!active) return;
    // A manifest with a fault in it is no removal: what runs of it goes on, and its positions stay.
    const refused = rejected.map(({ name }) => name);
    const present = new Set([...functions.map(({ manifest }) => manifest.name), ...refused, ...withheld, ...kept]);
    if (complete) {
      const gone = this.all.filter(({ name }) => !present.has(name));
      await Promise.all(gone.map((each) => this.remove(each, this.successor(each, functions))));
    }
    await Promise.all(functions.map((offer) => this.bring(active, offer, mended.has(offer) ? "mended" : "added")));
    if (complete) await active.dispatcher.retireOthers([...present].filter((name) => name !== undefined));
    this.isComplete = complete;
    this.isLoaded = true;
  }

  /** A manifest with a fault in it leaves what runs of it as it is. Gives the names of what does. */
  private refuse(
    functions: readonly FunctionOffer[],
    rejected: readonly RejectedOffer[],
    faults: readonly WatchfireError[],
  ): string[] {
    const declared = [...functions.map(({ manifest }) => manifest), ...rejected];
    const told = rejected.map((each) => ({ each, running: this.runningOf(each, declared) }));
    for (const { each, running } of told) for (const liveFunction of running) liveFunction.refuse(each.faults);
    this.refused = told.flatMap(({ each, running }) => (running.length === 0 ? each : []));
    const others: RefusedFunction[] = [...this.refused];
    if (faults.length > 0) others.push({ name: undefined, file: this.options.functions ?? "", faults, isFolder: true });
    this.refusals.tell(others);
    return told.flatMap(({ running }) => running.map(({ name }) => name));
  }

  /** What runs of a manifest: what has its name or, where the name is wrong or another's, what its file declared before. */
  private runningOf({ name, file }: RejectedOffer, declared: readonly Declared[]): readonly LiveFunction[] {
    const named = name === undefined ? undefined : this.live.get(name);
    if (named && (named.manifest.file === file || declared.every((each) => each.file !== named.manifest.file))) {
      return [named];
    }
    const names = new Set(declared.map((each) => each.name));
    return this.all.filter((each) => each.manifest.file === file && !names.has(each.name));
  }

  /** The one new function that a file declares in the place of one that it declared before. */
  private successor({ manifest: { file } }: LiveFunction, functions: readonly FunctionOffer[]): string | undefined {
    const fresh = functions.filter(({ manifest }) => manifest.file === file && !this.live.has(manifest.name));
    return fresh.length === 1 ? fresh[0]?.manifest.name : undefined;
  }

  private async bring(components: ActiveComponents, offer: FunctionOffer, occasion: Occasion): Promise<void> {
    if (this.frozen) return;
    const { manifest } = offer;
    const existing = this.live.get(manifest.name);
    const { transport, accounts, namespace, clock, random, log } = this.options;
    const liveFunction =
      existing ?? new LiveFunction(offer, { ...components, transport, accounts, namespace, clock, random, log });
    this.live.set(manifest.name, liveFunction);
    const brought = existing ? liveFunction.update(offer) : liveFunction.start(this.isLoaded ? occasion : "start");
    // A function that waits for a Secret or a right must keep neither the others from being ready nor the next reload waiting.
    // Nor must one whose build takes long.
    if (manifest.env.length === 0 && !accounts) await Promise.race([brought, pause(clock, slowBringMs)]);
  }

  private async remove(liveFunction: LiveFunction, successor: string | undefined): Promise<void> {
    const { name } = liveFunction;
    await liveFunction.stop({ retire: true });
    this.live.delete(name);
    if (successor === undefined) this.options.log.info({ function: name }, "function removed");
    else this.options.log.info({ function: name, successor }, "function removed, its manifest has another name now");
  }
}
