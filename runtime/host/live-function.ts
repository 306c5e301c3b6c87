import type { ResolvedEnv } from "../access/env.ts";
import { pause } from "../base/clock.ts";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { sourceText } from "../bundle/source-text.ts";
import type { FunctionOffer, Origin } from "../catalog/function-source.ts";
import type { FunctionDispatch } from "../engine/function-dispatch.ts";
import { selectionOf } from "../engine/state/sharding.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { Watch } from "../informer/informers.ts";
import { NamespaceInformer } from "../informer/namespace-informer.ts";
import { passingCodes } from "../journal/nats/fault.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import { triggersOf } from "../manifest/trigger-record.ts";
import type { Logger } from "../observe/log.ts";
import type { UserMetrics } from "../observe/user-metrics.ts";
import { type ActiveComponents, sourceOf } from "./components.ts";
import { FunctionEnv, type FunctionEnvParts } from "./function-env.ts";
import { LiveCanary, type LiveCanaryParts } from "./live-canary.ts";

export interface LiveFunctionParts
  extends FunctionEnvParts,
    Pick<LiveCanaryParts, "canaryAborted" | "store">,
    Pick<
      ActiveComponents,
      "dispatcher" | "watches" | "redactor" | "manifests" | "pauses" | "pausedSets" | "assignees" | "watchRoom"
    > {
  readonly reads: Pick<ActiveComponents["reads"], "set" | "delete" | "of">;
  readonly sandbox: LiveCanaryParts["sandbox"] & Pick<ActiveComponents["sandbox"], "unload">;
  readonly metrics: { readonly user: Pick<UserMetrics, "forget"> };
  readonly log: Logger;
}

/** A fault: its code and a message. */
export type Trouble = Pick<WatchfireError, "code" | "message">;

/** Why a function is started: with the runtime, or after a change in the folder. */
export type Occasion = "start" | "added" | "mended";

/** The state of a function. */
export type LiveState =
  | { readonly type: "starting" }
  | { readonly type: "running" }
  /** Something outside is missing, such as a Secret. Retried automatically. */
  | { readonly type: "waiting"; readonly fault: Trouble }
  /** It cannot run until its files change. */
  | { readonly type: "disabled"; readonly fault: Trouble };

/** The informer of one trigger. */
interface TriggerInformer {
  readonly trigger: string;
  /** The key that `sourceKey` returns. */
  readonly key: string;
  readonly watch: Watch;
  /** True once its first list, or the checkpoint it resumed from, is there. */
  caughtUp(): boolean;
}

/** One function, from its manifest to its informers. */
export class LiveFunction {
  readonly name: string;
  /** Name of its instance in the sandbox. Each shard of a function has separate isolates. */
  readonly instance: string;
  private readonly parts: LiveFunctionParts;
  private readonly environment: FunctionEnv;
  /** Other code that gets a share of its keys. */
  readonly canary: LiveCanary;
  private offered: FunctionOffer;
  private current: FunctionManifest;
  private bundled: Bundle | undefined;
  private env: ResolvedEnv | undefined;
  /** Why `env` can no longer be read. The function continues with the values it has. */
  private envFault: string | undefined;
  private dispatch: FunctionDispatch | undefined;
  private places: TriggerInformer[] = [];
  /** Namespace scopes that have not listed yet. */
  private unlisted = new Set<NamespaceInformer>();
  /** Aborts when a newer change arrives, which must not wait for an older one that waits for a Secret. */
  private latest: AbortController | undefined;
  private now: LiveState = { type: "starting" };
  private refused: Trouble | undefined;
  /** Number of offers and refusals so far. Only the last one determines the state of the files. */
  private newest = 0;
  /** True once it is to end. */
  private isEnding = false;
  /** Changes are applied one after the other, because files may change faster than a build. */
  private last: Promise<void> = Promise.resolve();

  constructor(offer: FunctionOffer, parts: LiveFunctionParts) {
    this.name = offer.manifest.name;
    this.instance = offer.shard ? `${this.name}@${offer.shard.number}` : this.name;
    this.offered = offer;
    this.current = offer.manifest;
    this.parts = parts;
    this.environment = new FunctionEnv(this.name, parts);
    this.canary = new LiveCanary(this.name, this.instance, parts);
  }

  get state(): LiveState {
    return this.now;
  }

  get manifest(): FunctionManifest {
    return this.current;
  }

  /** Origin of the last offered code, whether it runs or not. */
  get origin(): Origin {
    return this.offered.origin;
  }

  /** Why the newest files do not run. `undefined` if they do. */
  get refusal(): Trouble | undefined {
    return this.refused;
  }

  /** Returns the keys (`sourceKey`) of the trigger's informers. */
  sources(trigger: string): string[] {
    return this.places.filter((place) => place.trigger === trigger).map(({ key }) => key);
  }

  /** Keys (`sourceKey`) of the informers without a first list. */
  get behind(): string[] {
    const first = this.parts.reads.of(this.name)?.behind ?? [];
    return [...this.places.filter((place) => !place.caughtUp()).map(({ key }) => key), ...first];
  }

  /** The absolute paths of files whose change means new code. */
  get inputs(): readonly string[] {
    return this.bundled?.inputs ?? [this.current.handler];
  }

  /** Returns the text of a file as compiled into the running code, by the name in stack traces. */
  sourceText(file: string): string | undefined {
    return this.bundled && sourceText(this.bundled, file);
  }

  /** Builds, loads and subscribes the function. A failure is logged and becomes its state; it is not thrown. */
  start(occasion: Occasion): Promise<void> {
    return this.ask(this.offered, occasion);
  }

  /**
   * Applies new code or a new manifest, entirely or not at all. Code that fails to build or load leaves the running code in
   * place. A newer update cancels one that still waits.
   */
  update(offer: FunctionOffer): Promise<void> {
    return this.ask(offer, "mended");
  }

  /** Applies `spec.paused` of its set's FunctionSet. */
  heedSet(): void {
    const { name, parts } = this;
    if (this.isEnding) return;
    const { origin } = this;
    const { set, namespace = parts.namespace } = origin.type === "config-map" ? origin : { set: "" };
    parts.pauses.heedSet(name, parts.pausedSets.get(namespace)?.of(set)?.paused ? set : undefined);
  }

  /** Called when the manifest is not valid any more. The running version continues. */
  refuse(faults: readonly WatchfireError[]): void {
    this.newest++;
    const code = faults[0]?.code ?? "WF_RUNTIME_INTERNAL";
    this.disable({ code, message: faults.map(({ message }) => message).join("\n") });
  }

  /** Starts nothing more. The dispatcher ends running attempts. */
  freeze(): void {
    this.isEnding = true;
    this.latest?.abort();
  }

  /**
   * Unsubscribes and unloads the function, and loads it again once its account has its rights. Checkpoints stay. Resolves when it is
   * unloaded.
   */
  async restart(): Promise<void> {
    if (this.isEnding) return;
    const left = this.leave({ retire: false });
    void this.ask(this.offered, "mended");
    await left;
  }

  /** Unsubscribes and unloads the function. `retire`: the function was removed, and its checkpoints are kept for seven days. */
  stop(how: { readonly retire: boolean }): Promise<void> {
    this.isEnding = true;
    return this.leave(how);
  }

  private leave({ retire }: { readonly retire: boolean }): Promise<void> {
    this.latest?.abort();
    return this.next(async () => {
      await this.leaveAll({ retire });
      await this.canary.leave();
      await this.parts.sandbox.unload(this.instance);
      this.parts.watchRoom.leave(this);
      this.parts.pauses.heed(this.name, false);
      this.parts.pauses.heedSet(this.name, undefined);
      // Another slot may have a shard of the function, which still needs these.
      if (!this.parts.assignees.leave(this.name, this)) return;
      this.parts.manifests.delete(this.name);
      this.parts.reads.delete(this.name);
      this.parts.redactor.forget(this.name);
      this.parts.metrics.user.forget(this.name);
      this.parts.grants?.forget(this.name);
      this.parts.accounts?.forget(this.name);
    });
  }

  private ask(offer: FunctionOffer, occasion: Occasion): Promise<void> {
    this.offered = offer;
    this.latest?.abort();
    this.latest = new AbortController();
    const { signal } = this.latest;
    const number = ++this.newest;
    const applied = this.next(() => this.apply(offer, occasion, signal, number));
    const refresh = () => this.next(() => this.refreshEnv(signal));
    void applied.then(() => this.environment.follow(this.current, signal, refresh));
    return applied;
  }

  private next(step: () => Promise<void>): Promise<void> {
    this.last = this.last.then(step, step);
    return this.last;
  }

  private async apply(offer: FunctionOffer, occasion: Occasion, signal: AbortSignal, number: number): Promise<void> {
    if (signal.aborted) return;
    this.heedSet();
    const isNewest = () => number === this.newest;
    const { manifest } = offer;
    const ran = this.dispatch !== undefined;
    try {
      const bundle = await offer.bundle(signal);
      if (signal.aborted) return;
      if (ran && bundle.hash === this.bundled?.hash && same(manifest, this.current)) {
        await this.followCanary(offer);
        if (this.refused?.message !== offer.refused?.message && isNewest()) this.logOccasion("mended", bundle);
        return;
      }
      // `undefined`: the function was stopped, or a newer change arrived, while this one waited.
      const env = await this.environment.awaited(manifest, signal, (error) => this.lacks(error, manifest));
      if (!env) return;
      await this.roomFor(manifest, signal);
      const { dispatch } = this;
      // Before the first attempt, since a key's attempts stay with one version over a restart.
      const follow = () => this.followCanary(offer);
      if (dispatch) await this.swap(dispatch, manifest, bundle, env, follow);
      else await this.load(manifest, bundle, env).then(follow);
      // The new version runs from here on, even if a newer change has arrived, which may restore the previous version.
      this.current = manifest;
      this.bundled = bundle;
      if (signal.aborted) return;
      if (!this.dispatch) await this.begin(manifest, bundle, signal);
      // A change that was refused before anything ran remains refused.
      const refused = this.now.type === "disabled" ? this.now.fault : this.refused;
      this.now = { type: "running" };
      this.logOccasion(ran ? "changed" : occasion, bundle);
      if (!isNewest()) this.refused = refused;
    } catch (error) {
      if (!this.dispatch) this.parts.watchRoom.leave(this);
      if ((signal.aborted && error === signal.reason) || !isNewest()) return;
      this.disable(asFault(error, "WF_RUNTIME_INTERNAL", manifest), offer.isGone?.());
    }
  }

  private followCanary({ canary, manifest }: FunctionOffer): Promise<void> {
    return this.canary.follow(canary, manifest.delivery.concurrency, this.env?.values ?? {});
  }

  /** Waits for room for the manifest's watches. A running function does not wait: its change is refused. */
  private async roomFor(manifest: FunctionManifest, signal: AbortSignal): Promise<void> {
    const { watchRoom, clock, own } = this.parts;
    const watched = new Set<string>();
    for (const each of [...manifest.triggers, ...manifest.reads]) {
      const places = each.namespaces.type === "names" ? each.namespaces.names : [""];
      for (const place of places)
        if (place === "" || this.mayOwnIn(place)) watched.add(sourceKey(sourceOf(each, place, own)));
    }
    for (;;) {
      const objection = watchRoom.objection(this, watched, manifest);
      if (!objection) return watchRoom.take(this, watched);
      if (this.dispatch) throw objection;
      this.lacks(objection, manifest);
      await pause(clock, storeRetryMs, signal);
    }
  }

  /** Logs that the function runs. One line, at debug level at the runtime's start. */
  private logOccasion(occasion: Occasion | "changed", bundle: Bundle): void {
    const { log } = this.parts;
    const before = this.refused;
    this.refused = this.offered.refused;
    const level = occasion === "start" ? "debug" : "info";
    log[level]({ function: this.name, bundle: bundle.hash.slice(0, 12) }, occasions[occasion]);
    if (!this.refused || this.refused.message === before?.message) return;
    log.error({ function: this.name, error: this.refused.message }, "a part of the manifest refused");
  }

  /** Reports a missing object once, however often it is retried. */
  private lacks(error: unknown, manifest: FunctionManifest): void {
    const fault = asFault(error, "WF_ACCESS_ENV", manifest);
    const before = this.dispatch ? this.refused : this.now.type === "waiting" ? this.now.fault : undefined;
    if (this.dispatch) this.refused = fault;
    else this.now = { type: "waiting", fault };
    if (before?.message === fault.message) return;
    this.parts.log.warn({ function: this.name, error: fault.message }, "function cannot be loaded yet");
  }

  /** Loads a new isolate with changed values, once the attempts with the old ones have ended. */
  private async refreshEnv(signal: AbortSignal): Promise<void> {
    const { dispatch, bundled, current } = this;
    if (signal.aborted || !dispatch || !bundled) return;
    try {
      const env = await this.environment.read(current, signal);
      this.envFault = undefined;
      if (signal.aborted || same(env.values, this.env?.values)) return;
      await this.swap(dispatch, current, bundled, env);
      await this.canary.refresh(env.values);
      this.parts.log.info({ function: this.name }, "changed environment loaded");
    } catch (error) {
      if (signal.aborted) return;
      const { message } = asFault(error, "WF_ACCESS_ENV", current);
      if (message === this.envFault) return;
      this.envFault = message;
      this.parts.log.warn({ function: this.name, error: message }, "environment not read again, the old values stay");
    }
  }

  /**
   * Replaces code and permissions together, while no attempt runs. If the triggers change as well, the function must be started
   * again. `loaded` is called before any attempt begins.
   */
  private async swap(
    dispatch: FunctionDispatch,
    manifest: FunctionManifest,
    bundle: Bundle,
    env: ResolvedEnv,
    loaded?: () => Promise<void>,
  ): Promise<void> {
    // The stored state of objects depends on both.
    const rewired =
      !same(triggersOf(manifest), triggersOf(this.current)) ||
      isReconciler(manifest) !== isReconciler(this.current) ||
      !same(batchingOf(manifest), batchingOf(this.current)) ||
      bundle.usesOldObject !== this.bundled?.usesOldObject;
    await dispatch.replace(manifest, bundle.usesOldObject, async () => {
      await this.load(manifest, bundle, env);
      await loaded?.();
      if (rewired) await this.leaveAll({ retire: false });
    });
  }

  private async begin(manifest: FunctionManifest, bundle: Bundle, signal: AbortSignal): Promise<void> {
    this.dispatch = await this.dispatched(manifest, bundle, signal);
    for (const trigger of manifest.triggers) this.subscribe(this.dispatch, trigger);
  }

  /**
   * Opens the function's dispatch. Retries while the store refuses writes, such as on a full disk, because the function is not at
   * fault.
   */
  private async dispatched(manifest: FunctionManifest, bundle: Bundle, signal: AbortSignal): Promise<FunctionDispatch> {
    const { dispatcher, clock } = this.parts;
    const { shard } = this.offered;
    for (;;) {
      try {
        return await dispatcher.function(manifest, { usesOldObject: bundle.usesOldObject, shard });
      } catch (error) {
        if (!(error instanceof WatchfireError) || !passing.has(error.code)) throw error;
        this.lacks(error, manifest);
      }
      await pause(clock, storeRetryMs, signal);
    }
  }

  private async leaveAll({ retire }: { readonly retire: boolean }): Promise<void> {
    await this.unsubscribe();
    this.dispatch = undefined;
    await this.parts.dispatcher.remove(this.name, { retire });
  }

  private async load(manifest: FunctionManifest, bundle: Bundle, env: ResolvedEnv): Promise<void> {
    const { redactor, sandbox, manifests, pauses, reads, assignees } = this.parts;
    assignees.enter(this.name, this);
    redactor.learn(this.name, env.sensitive);
    try {
      await sandbox.load(manifest, bundle, env.values, this.instance);
    } catch (error) {
      if (this.env) redactor.learn(this.name, this.env.sensitive);
      throw error;
    }
    this.env = env;
    manifests.set(this.name, manifest);
    pauses.heed(this.name, manifest.paused ?? false);
    reads.set(manifest);
  }

  private subscribe(dispatch: FunctionDispatch, trigger: Trigger): void {
    const { namespaces } = trigger;
    if (namespaces.type === "all") this.enter(dispatch, trigger, "");
    else if (namespaces.type === "labels") this.follow(dispatch, trigger, namespaces.labelSelector);
    else for (const name of namespaces.names) if (this.mayOwnIn(name)) this.enter(dispatch, trigger, name);
  }

  /** True if some objects of a namespace may belong to this shard. */
  private mayOwnIn(namespace: string): boolean {
    return this.offered.shard?.mayOwnIn(namespace) ?? true;
  }

  private follow(dispatch: FunctionDispatch, trigger: Trigger, labelSelector: string): void {
    const scope = new NamespaceInformer({
      watches: this.parts.watches,
      clock: this.parts.clock,
      id: `${this.name}/${trigger.name}/namespaces`,
      labelSelector,
      concerns: (namespace) => this.mayOwnIn(namespace),
      believes: (namespaces) => dispatch.believes(trigger.name, namespaces),
      // Recorded at once, before any of the namespaces can have listed, because namespaces added later only bring new objects.
      begin: (namespaces) => dispatch.retain(trigger.name, namespaces),
      enter: (namespace) => this.enter(dispatch, trigger, namespace),
      leave: (namespace) => {
        void this.leavePlace(trigger, namespace);
        dispatch.retain(trigger.name, scope.namespaces);
      },
      ready: () => this.unlisted.delete(scope),
    });
    this.unlisted.add(scope);
    const caughtUp = () => !this.unlisted.has(scope);
    this.places.push({ trigger: trigger.name, key: sourceKey(scope.spec), watch: scope, caughtUp });
  }

  private enter(dispatch: FunctionDispatch, trigger: Trigger, namespace: string): void {
    const { labelSelector, fieldSelector } = trigger;
    const spec = this.specOf(trigger, namespace);
    const { shard } = this.offered;
    const selection = selectionOf(labelSelector, fieldSelector, shard?.sharding);
    const subscription = dispatch.subscription(trigger.name, { selection, namespace });
    const watch = this.parts.watches.subscribe(spec, subscription);
    const caughtUp = () => subscription.isReady;
    this.places.push({ trigger: trigger.name, key: sourceKey(spec), watch, caughtUp });
  }

  /** Returns the informer of a trigger in a namespace, "" for all. */
  specOf(trigger: Trigger, namespace: string): SourceSpec {
    return sourceOf(trigger, namespace, this.parts.own);
  }

  private async leavePlace(trigger: Trigger, namespace: string): Promise<void> {
    const key = sourceKey(this.specOf(trigger, namespace));
    const left = this.places.filter((place) => place.trigger === trigger.name && place.key === key);
    this.places = this.places.filter((place) => !left.includes(place));
    await Promise.all(left.map(({ watch }) => watch.close()));
  }

  private async unsubscribe(): Promise<void> {
    const left = this.places;
    this.places = [];
    this.unlisted.clear();
    await Promise.all(left.map(({ watch }) => watch.close()));
  }

  /**
   * Reports the fault once, however often the folder is read. `isGone`: suppresses the log line, because the removal is logged.
   */
  private disable(fault: Trouble, isGone = false): void {
    const before = this.dispatch ? this.refused : this.now.type === "disabled" ? this.now.fault : undefined;
    if (this.dispatch) this.refused = fault;
    else this.now = { type: "disabled", fault };
    if (isGone || before?.message === fault.message) return;
    const message = this.dispatch ? "change refused, the old version runs on" : "function disabled";
    this.parts.log.error({ function: this.name, error: fault.message }, message);
  }
}

/** Interval of retries, in milliseconds, if the store refuses writes or there is no room for watches. */
const storeRetryMs = 5_000;

/** Codes of a store that may accept writes again later. */
const passing: ReadonlySet<ErrorCode> = new Set(["WF_CHECKPOINT_WRITE_FAILED", "WF_CHECKPOINT_FULL", ...passingCodes]);

const occasions: Readonly<Record<Occasion | "changed", string>> = {
  start: "function loaded",
  added: "function added",
  changed: "change loaded",
  mended: "function mended",
};

/** Returns the settings that batches depend on. `undefined` without batches. */
const batchingOf = ({ delivery: { batch, concurrency } }: FunctionManifest) => batch && { batch, concurrency };

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Keys are stored in another form than events. */
const isReconciler = ({ delivery }: FunctionManifest): boolean => delivery.mode === "Reconcile";

function asFault(error: unknown, code: ErrorCode, manifest: FunctionManifest): WatchfireError {
  if (error instanceof WatchfireError) return error;
  const what = error instanceof Error ? error.message : String(error);
  return new WatchfireError(code, { what, place: { file: manifest.file }, cause: error });
}
