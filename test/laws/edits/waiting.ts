import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import type { FunctionManifest } from "../../../runtime/manifest/function.ts";
import { keyOf } from "./cluster.ts";
import type { Identities, Identity } from "./identities.ts";
import type { Law } from "./law-names.ts";
import { type QuietParts, wants } from "./quiet-laws.ts";
import { functionName } from "./spec.ts";

/** A key or an event that waits on disk while no process runs. */
interface Waiting {
  readonly trigger: string;
  readonly identity: Identity | undefined;
  readonly key: string;
  /** For a key: the objects that woke it, each with its trigger. The key itself if something else woke it. */
  readonly wokenBy: readonly { readonly identity: Identity | undefined; readonly key: string }[] | undefined;
  readonly resourceVersion: string;
  /** Wall-clock time in milliseconds. */
  readonly receivedAt: number;
}

/** Checks that events and keys which were waiting during an edit are run, delivered, or named in one warning. */
export class WaitingLaw {
  private readonly warnings: Record<string, unknown>[];
  private readonly report: (law: Law, what: string) => void;
  private waiting: readonly Waiting[] = [];
  private since = 0;
  private warned = 0;
  private phase = 0;
  private readonly identities: Identities;
  /** A kill may have lost what was written since this wall-clock time. */
  private lostSince = Number.POSITIVE_INFINITY;

  /** @param warnings what the log was warned of, which grows */
  constructor(warnings: Record<string, unknown>[], identities: Identities, report: (law: Law, what: string) => void) {
    this.warnings = warnings;
    this.identities = identities;
    this.report = report;
  }

  /**
   * Reads what the previous manifest left. Must be called while no process writes, and before the next manifest is entered.
   */
  async look(store: Checkpoint, former: ReadonlyMap<string, Identity>, tick: number): Promise<void> {
    const views = await store.views(functionName);
    const triggers = new Map(views.map(({ id, trigger }) => [id, trigger]));
    // A kill may have lost a rename: the record then has the earlier name.
    const named = (trigger: string) =>
      former.get(trigger) ?? (this.wasLost ? this.identities.lastNamed(trigger, this.phase) : undefined);
    const byIdentity = new Map(views.map(({ identity, trigger }) => [identity, named(trigger)]));
    const waiting: Waiting[] = [];
    for (const header of await store.spillHeaders(functionName)) {
      const trigger = triggers.get(header.view);
      const pending = header.kind === "key" ? header.pending : undefined;
      const isResync = pending?.causes.every(({ type }) => type === "Resync") ?? false;
      if (trigger === undefined || header.kind === "tick" || isResync) continue;
      const { receivedAt } = header;
      const resourceVersion = header.kind === "key" ? "" : header.resourceVersion;
      const identity = named(trigger);
      const key = keyOf(header);
      const wokenBy = pending?.causes.map(({ trigger: by, namespace = "", name }) =>
        by !== undefined && name !== undefined
          ? { identity: byIdentity.get(by), key: keyOf({ namespace, name }) }
          : { identity, key },
      );
      waiting.push({ trigger, identity, key, wokenBy, resourceVersion, receivedAt });
    }
    this.waiting = waiting;
    this.lostSince = Number.POSITIVE_INFINITY;
    this.since = tick;
    this.warned = this.warnings.length;
  }

  /** Notes that a kill lost what was written since a wall-clock time, as it may if the checkpoints are in Secrets. */
  killed(lostSince: number): void {
    this.lostSince = Math.min(this.lostSince, lostSince);
  }

  private get wasLost(): boolean {
    return this.lostSince < Number.POSITIVE_INFINITY;
  }

  /** Puts the manifest after `look` into force. */
  enter(phase: number): void {
    this.phase = phase;
  }

  /** Checks a quiet world in which no other manifest followed since `look`. */
  check(parts: QuietParts, manifest: FunctionManifest): void {
    const isReconciler = manifest.delivery.mode === "Reconcile";
    const since = this.warnings.slice(this.warned);
    for (const trigger of new Set(this.waiting.map((it) => it.trigger))) {
      const mine = this.waiting.filter((it) => it.trigger === trigger);
      const named = since.filter((fields) => fields.trigger === trigger && fields.waiting !== undefined);
      if (named.length > 1) this.report("waits", `${trigger}: ${named.length} warnings`);
      if (named.length > 0) continue;
      for (const each of mine) this.checkOne(parts, each, isReconciler);
    }
    this.waiting = [];
  }

  private checkOne(parts: QuietParts, waiting: Waiting, isReconciler: boolean): void {
    const { identity, trigger: name, key, wokenBy, resourceVersion } = waiting;
    const what = `${wokenBy ? "key" : `event @${resourceVersion}`} ${key} of ${name}`;
    if (!identity?.triggers.has(this.phase)) this.report("waits", `${what}: its trigger is gone, and nobody says so`);
    else if (!isReconciler) {
      for (const each of wokenBy ?? [{ identity, key }])
        if (!this.isTold(parts, each, wokenBy ? undefined : resourceVersion))
          this.report("waits", `${what} was not told by ${each.identity?.name} ${each.key}`);
    } else if (wokenBy && !this.hasEnded({ identity, key }) && !this.isSkipped(parts, waiting))
      this.report("waits", `${what} was not run`);
  }

  /**
   * Whether a kill took the row, and the first list as well. The guide: a function that is killed before it is ready is still
   * new, and what was created meanwhile is initial. A trigger that skips initial objects wakes nobody with it.
   */
  private isSkipped({ cluster }: QuietParts, { identity, key, wokenBy, receivedAt }: Waiting): boolean {
    if (receivedAt < this.lostSince) return false;
    return (wokenBy ?? [{ identity, key }]).every(({ identity: by, key: at }) => {
      const trigger = by?.triggers.get(this.phase);
      const real = trigger && cluster.here(trigger.kind).get(at);
      return real && trigger.initialEvents === "Skip" && real.rv <= (by?.initialUpTo ?? 0);
    });
  }

  private hasEnded({ identity, key }: { readonly identity: Identity | undefined; readonly key: string }): boolean {
    return identity?.told.some((it) => it.key === key && it.tick > this.since && it.ended === "done") ?? false;
  }

  /**
   * True when a delivery of the object has ended since the edit, or when the manifest does not want its present state delivered.
   * @param only the one state that is asked for; any by default
   */
  private isTold(
    parts: QuietParts,
    object: { readonly identity: Identity | undefined; readonly key: string },
    only: string | undefined,
  ): boolean {
    const trigger = object.identity?.triggers.get(this.phase);
    const real = trigger && parts.cluster.here(trigger.kind).get(object.key);
    const span = parts.spans.find((it) => it.phase === this.phase);
    if (!real || !span || this.hasEnded(object)) return true;
    const isWanted = wants({ ...span, trigger, isReconciler: false }, real, []);
    const isOfIt = only === undefined || String(real.rv) === only;
    return !isWanted || !isOfIt || trigger.changedFields.length > 0;
  }
}
