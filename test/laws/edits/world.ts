import type { Delivery, Look, Outcome } from "../../../runtime/engine/delivery/delivery.ts";
import { Dispatcher } from "../../../runtime/engine/dispatcher.ts";
import type { FunctionDispatch } from "../../../runtime/engine/function-dispatch.ts";
import { selectionOf } from "../../../runtime/engine/state/sharding.ts";
import type { FunctionManifest, Trigger } from "../../../runtime/manifest/function.ts";
import { ModelExecutor } from "../../engine/model-executor.ts";
import { Dice } from "../random.ts";
import { bodyOf, Cluster, metaOf, namespacesOf, selects } from "./cluster.ts";
import { Identities, type Identity } from "./identities.ts";
import { checkKeys } from "./key-laws.ts";
import { type Law, laws } from "./law-names.ts";
import { type OpenStore, type Place, placeOf } from "./places.ts";
import { type Edited, manifestsOf, type Phase, type Plan } from "./plan.ts";
import { checkQuiet, type QuietParts, type Span } from "./quiet-laws.ts";
import { SelectedSource } from "./selected-source.ts";
import { functionName, readSpec } from "./spec.ts";
import { describe, Telling } from "./telling.ts";
import { WaitingLaw } from "./waiting.ts";

/** A law that did not hold, with what happened instead. */
export interface Breach {
  readonly law: Law;
  readonly what: string;
  readonly phase: number;
}

/** The outcome of a world. */
export interface Fate {
  readonly broken: readonly Breach[];
  readonly deliveries: number;
  /** A log of the world's events, one line each. */
  readonly story: readonly string[];
}

/** A breach in words. */
export const wordsOf = ({ law, what }: Breach): string => `${laws[law]}: ${what}`;

/** Runs a plan from its first manifest to the last quiet moment, or to the first breach that a quiet moment finds. */
export async function runPlan(plan: Plan, place: Place = placeOf("memory")): Promise<Fate> {
  const world = new EditWorld(plan, place);
  try {
    await world.live();
    return { broken: world.broken, deliveries: world.telling.deliveries, story: world.story };
  } finally {
    place.remove();
  }
}

interface Process {
  readonly opened: OpenStore;
  readonly dispatcher: Dispatcher;
  loaded: FunctionDispatch;
  sources: readonly SelectedSource[];
}

const ok: Outcome = { type: "ok", durationMs: 1 };

/** One function whose manifest is edited, on the real dispatcher and store, and a virtual clock. */
class EditWorld {
  readonly broken: Breach[] = [];
  readonly story: string[] = [];
  readonly telling: Telling;
  private readonly plan: Plan;
  private readonly place: Place;
  private readonly manifests: readonly Edited[];
  private readonly cluster: Cluster;
  private readonly identities = new Identities();
  private readonly spans: Span[] = [];
  private readonly warnings: Record<string, unknown>[] = [];
  private readonly waiting: WaitingLaw;
  private process!: Process;
  private manifest!: FunctionManifest;
  private usesOldObject = false;
  private phase = 0;
  private dice: Dice;
  private tick = 0;
  private incarnation = 0;
  private calm = false;
  private wasQuiet = false;

  constructor(plan: Plan, place: Place) {
    this.plan = plan;
    this.place = place;
    this.dice = new Dice(plan.seed);
    this.manifests = manifestsOf(plan);
    this.cluster = new Cluster(() => ++this.tick);
    const report = (law: Law, what: string) => {
      this.broken.push({ law, what, phase: this.phase });
      this.tell(`BROKEN: ${laws[law]}: ${what}`);
    };
    const { cluster, identities } = this;
    const now = () => place.clock.monotonic();
    this.telling = new Telling({ cluster, identities, nextTick: () => ++this.tick, now, report });
    this.waiting = new WaitingLaw(this.warnings, identities, report);
  }

  private tell(line: string): void {
    this.story.push(line);
  }

  async live(): Promise<void> {
    for (const [number, phase] of this.plan.phases.entries()) {
      this.dice = new Dice(phase.seed);
      await this.begin(number, phase);
      await this.pass(phase);
      if (!phase.isQuiet) this.wasQuiet = false;
      else if ((await this.settle()) && this.broken.length > 0) break;
    }
    this.process.dispatcher.halt();
    this.process.opened.die();
  }

  /** Puts the manifest of a phase into force. */
  private async begin(number: number, phase: Phase): Promise<void> {
    const edited = this.manifests[number];
    const manifest = edited && readSpec(edited.spec);
    if (!manifest || typeof manifest === "string") throw new Error(`no manifest of phase ${number}: ${manifest}`);
    if (number > 0) await this.leave(phase);
    const wasInForce = this.spans.at(-1);
    if (wasInForce) this.spans[this.spans.length - 1] = { ...wasInForce, to: this.tick };
    const before = this.manifest;
    this.manifest = manifest;
    if (number === 0 || phase.begins !== "hot") this.meanwhile(phase);
    this.phase = number;
    this.calm = false;
    this.tell(
      `--- phase ${number}, ${number === 0 ? "first" : phase.begins}: ${edited.changed.join(", ") || "no edit"}`,
    );
    this.spans.push({ phase: number, manifest, from: ++this.tick, to: undefined });
    const former = this.identities.enter(number, manifest);
    this.waiting.enter(number);
    this.telling.enter(number, manifest);
    this.telling.phaseStart = this.tick;
    const changesAnswers = before && conditionsOf(before) !== conditionsOf(manifest);
    // A trigger that was removed may be restored by its name.
    const goOn = new Set(former.values()).isSupersetOf(new Set(this.identities.here));
    const isNews = edited.tells !== "nothing" || changesAnswers || !goOn || phase.meanwhile > 0;
    this.telling.isSilent = this.wasQuiet && !isNews;
    const isRewired = !before || rewires(before, manifest) || this.usesOldObject !== phase.usesOldObject;
    this.usesOldObject = phase.usesOldObject;
    if (number > 0 && phase.begins === "hot") await this.reload(isRewired, former);
    else await this.start(former);
    if (number > 0 && phase.begins === "hot") this.meanwhile(phase);
  }

  /** Ends the process, or unloads what is loaded. */
  private async leave({ begins }: Phase): Promise<void> {
    const { opened, dispatcher } = this.process;
    if (begins === "stopped") {
      const clean = await this.patiently(dispatcher.drain(10_000));
      this.telling.hasKilled ||= !clean;
      await this.patiently(opened.store.close(clean));
    } else this.telling.hasKilled ||= begins === "killed";
    if (begins !== "hot") await this.endProcess(begins === "killed" ? this.place.lostMs : 0);
  }

  private async endProcess(lostMs: number): Promise<void> {
    const { opened, dispatcher } = this.process;
    this.incarnation++;
    opened.die();
    dispatcher.halt();
    this.telling.processEnded(lostMs);
    if (!this.place.keepsBodies) this.telling.bodiesSince = ++this.tick;
    if (lostMs > 0) this.waiting.killed(this.place.clock.now() - lostMs);
    await this.place.clock.quiet();
  }

  private meanwhile({ meanwhile, compacts }: Phase): void {
    for (let changes = meanwhile; changes > 0; changes--) this.change();
    if (compacts) {
      this.cluster.compacted = this.cluster.now;
      this.tell(`history up to ${this.cluster.now} is gone`);
    }
  }

  private change(): void {
    const before = this.cluster.log.length;
    this.cluster.change(
      this.dice,
      this.manifest.triggers.map(({ kind }) => kind),
    );
    this.telling.isSilent = false;
    for (const { type, kind, namespace, name, uid, rv, a, b, labels, owner, of } of this.cluster.log.slice(before)) {
      const content = type === "Deleted" ? "" : ` ${JSON.stringify({ a, b, ...labels, owner, of })}`;
      this.tell(`${type} ${kind} ${namespace}/${name} ${uid}@${rv}${content}`);
    }
  }

  /** @param former the triggers of the manifest before, by name, where another one comes into force */
  private async start(former?: ReadonlyMap<string, Identity>): Promise<void> {
    const { clock } = this.place;
    const opened = await this.place.open(this.dice);
    if (former) await this.waiting.look(opened.store, former, this.tick);
    const runner = new ModelExecutor(
      () => this.manifest.delivery.concurrency,
      (delivery) => this.run(delivery),
    );
    const log = {
      info: () => {},
      warn: (fields: object, message: string) => {
        this.warnings.push({ ...fields, message });
        this.tell(`warning: ${message} ${JSON.stringify(fields)}`);
      },
      error: () => {},
    };
    const dispatcher = await Dispatcher.open({
      store: opened.store,
      runner,
      clock,
      random: () => 0.5,
      observer: {},
      log,
      look: this.look,
      memoryLimit: { events: this.plan.memoryEvents, bytes: 1 << 20 },
    });
    this.process = { opened, dispatcher, loaded: undefined as unknown as FunctionDispatch, sources: [] };
    await this.load();
  }

  private async load(): Promise<void> {
    const { dispatcher } = this.process;
    const { manifest, usesOldObject } = this;
    if (manifest.paused) dispatcher.hold(functionName, "manifest");
    else dispatcher.release(functionName, "manifest");
    const loaded = await this.patiently(dispatcher.function(manifest, { usesOldObject }));
    this.process.loaded = loaded;
    this.process.sources = manifest.triggers.flatMap((trigger) => this.sourcesOf(loaded, trigger));
  }

  /** Reloads the function in the running process: what watches is loaded again, the rest is updated in place. */
  private async reload(isRewired: boolean, former: ReadonlyMap<string, Identity>): Promise<void> {
    const { dispatcher, loaded, opened } = this.process;
    const { manifest, usesOldObject } = this;
    const swap = async () => {
      if (isRewired) await dispatcher.remove(functionName, { retire: false });
    };
    if (isRewired) this.process.sources = [];
    await this.patiently(loaded.replace(manifest, usesOldObject, swap));
    if (!isRewired) {
      if (manifest.paused) dispatcher.hold(functionName, "manifest");
      else dispatcher.release(functionName, "manifest");
      return;
    }
    this.telling.processEnded();
    await this.waiting.look(opened.store, former, this.tick);
    await this.load();
  }

  private sourcesOf(loaded: FunctionDispatch, trigger: Trigger): SelectedSource[] {
    const { cluster } = this;
    const { namespaces: scope, labelSelector, fieldSelector } = trigger;
    const chosen =
      scope.type === "all" ? [""] : scope.type === "names" ? scope.names : namespacesOf(scope.labelSelector);
    if (scope.type === "labels") loaded.retain(trigger.name, chosen);
    return chosen.map((namespace) => {
      const selection = selectionOf(labelSelector, fieldSelector, undefined);
      const subscription = loaded.subscription(trigger.name, { selection, namespace });
      const listed = (rv: number) => {
        const identity = this.identities.of(trigger.name);
        if (identity && !identity.hasBeenQuiet) identity.initialUpTo = Math.max(identity.initialUpTo, rv);
      };
      return new SelectedSource({ cluster, trigger, namespace }, subscription, listed);
    });
  }

  /** The API server's answer, as the trigger's source would bring the object. */
  private readonly look: Look = async (_, name, object) => {
    const trigger = this.manifest.triggers.find((each) => each.name === name);
    if (!trigger) throw new Error(`no trigger ${name}`);
    if (!this.calm && this.dice.chance(0.1)) throw new Error("the server is away");
    const state = this.cluster.here(trigger.kind).get(`${object.namespace}/${object.name}`);
    return state && selects(trigger, state) ? { ...metaOf(state), body: bodyOf(state, trigger) } : undefined;
  };

  private run(delivery: Delivery): Promise<Outcome> {
    const { dice, telling } = this;
    const process = this.incarnation;
    for (const each of delivery.members ?? [delivery]) this.tell(`told ${describe(each)}`);
    telling.begins(delivery);
    const outcome = this.calm || !this.plan.phases[this.phase]?.troubles ? ok : this.outcome();
    return new Promise((resolve) => {
      const end = () => {
        if (process !== this.incarnation) return;
        if (outcome !== ok) this.tell(`${delivery.id} ends: ${JSON.stringify(outcome)}`);
        telling.ends(delivery, outcome);
        resolve(outcome);
      };
      if (this.calm || dice.chance(0.5)) end();
      else this.place.clock.after(dice.pick([1, 100, 6_000, 80_000]), end);
    });
  }

  private outcome(): Outcome {
    const { dice } = this;
    const error = { name: "Error", message: "no", stack: "" };
    const roll = dice.next();
    if (roll < 0.55) return ok;
    if (roll < 0.7) return { type: "ok", durationMs: 1, requeueAfterMs: dice.pick([500, 20_000, 90_000]) };
    if (roll < 0.9) return { type: "failed", durationMs: 1, error };
    return roll < 0.95 ? { type: "permanent", durationMs: 1, error } : { type: "interrupted" };
  }

  /** Runs the steps of one manifest. */
  private async pass({ steps, crashes }: Phase): Promise<void> {
    const { dice } = this;
    const { clock } = this.place;
    for (let step = steps; step > 0; step--) {
      if (dice.chance(0.5)) this.change();
      if (crashes && dice.chance(0.04)) await this.crash();
      const { sources } = this.process;
      if (sources.length > 0) dice.pick(sources).step(dice);
      if (dice.chance(0.4)) await clock.quiet();
      if (dice.chance(0.4)) await clock.advance(dice.pick([0, 1, 30, 300, 5_000, 70_000]));
    }
  }

  private async crash(): Promise<void> {
    this.tell("killed");
    this.telling.hasKilled = true;
    await this.endProcess(this.place.lostMs);
    await this.start();
  }

  /** Lets everything be received and handled without further faults. Returns whether the world became quiet. */
  private async settle(): Promise<boolean> {
    const { clock } = this.place;
    this.calm = true;
    this.process.dispatcher.release(functionName, "manifest");
    let isStill = false;
    for (let round = 0; round < 60 && !isStill; round++) {
      const took = this.process.sources.map((source) => source.catchUp(this.dice));
      await clock.advance(70_000);
      const [status] = this.process.dispatcher.status();
      const waits = status ? status.queued + status.inFlight + status.spilled + status.requeued : 1;
      isStill = took.every((each) => each) && waits === 0;
    }
    for (const source of this.process.sources) source.catchUp(this.dice);
    await clock.advance(60_000);
    this.tell("all is quiet");
    await this.check();
    this.wasQuiet = true;
    for (const identity of this.identities.here) identity.hasBeenQuiet = true;
    return isStill;
  }

  private async check(): Promise<void> {
    const { cluster, identities, spans, manifest } = this;
    const report = (law: Law, what: string) => {
      this.broken.push({ law, what, phase: this.phase });
      this.tell(`BROKEN: ${laws[law]}: ${what}`);
    };
    const { bodiesSince } = this.telling;
    const parts: QuietParts = { cluster, identities, spans, bodiesSince, report };
    checkQuiet(parts);
    checkKeys(parts, this.phase, ++this.tick);
    this.waiting.check(parts, manifest);
    await this.checkRows(report);
  }

  /**
   * Checks that all rows on disk of present triggers have ended. Work that the clock started meanwhile may still run.
   */
  private async checkRows(report: (law: Law, what: string) => void): Promise<void> {
    const { store } = this.process.opened;
    const live = new Set((await store.views(functionName)).map(({ id }) => id));
    const timed: ReadonlySet<string> = new Set(["Resync", "Scheduled"]);
    const isTimed = new Set<string>();
    for (const row of await store.spillHeaders(functionName)) {
      const isOfTime =
        row.kind === "key" ? row.pending.causes.every(({ type }) => timed.has(type)) : row.kind === "tick";
      if (isOfTime) isTimed.add(row.id);
      else if (live.has(row.view)) report("rows", `${row.id} waits`);
    }
    for (const { started } of await store.begun()) {
      // A row stays whole for an attempt of a trigger that is gone, and may come back.
      if (!started.every(({ view }) => live.has(view))) continue;
      for (const { id } of started) if (!isTimed.has(id)) report("rows", `${id} has begun`);
    }
  }

  /** Advances time until the work is done: failed commits are repeated, and running handlers end. */
  private async patiently<T>(work: Promise<T>): Promise<T> {
    let open = true;
    const ended = () => {
      open = false;
    };
    void work.then(ended, ended);
    for (let turns = 0; open && turns < 1_000; turns++) await this.place.clock.advance(turns === 0 ? 0 : 5_000);
    return work;
  }
}

/**
 * True if an edit makes the watching parts load again instead of being updated in place, by the decision of `LiveFunction`.
 */
function rewires(before: FunctionManifest, after: FunctionManifest): boolean {
  const partsOf = ({ triggers, schedules, delivery: { mode, batch, concurrency } }: FunctionManifest) =>
    JSON.stringify([triggers, schedules, mode === "Reconcile", batch && { batch, concurrency }]);
  return partsOf(before) !== partsOf(after);
}

const conditionsOf = ({ triggers, delivery }: FunctionManifest): string =>
  JSON.stringify([delivery.mode === "Reconcile", triggers.map(({ matchConditions }) => matchConditions)]);
