import type { CheckpointStore } from "../../../runtime/checkpoint/store.ts";
import type { FunctionManifest } from "../../../runtime/manifest/function.ts";
import { keyOf } from "./cluster.ts";
import type { Identity } from "./identities.ts";
import type { Law } from "./law-names.ts";
import { type QuietParts, wants } from "./quiet-laws.ts";
import { functionName } from "./spec.ts";

/** A key or an event that waits on disk while nothing runs. */
interface Waiting {
  readonly trigger: string;
  readonly identity: Identity | undefined;
  readonly key: string;
  readonly isKey: boolean;
  readonly resourceVersion: string;
}

/** Sees to it that what waited when an edit came is run, told, or named in one warning. */
export class WaitingLaw {
  private readonly warnings: Record<string, unknown>[];
  private readonly report: (law: Law, what: string) => void;
  private waiting: readonly Waiting[] = [];
  private since = 0;
  private warned = 0;
  private phase = 0;

  /** @param warnings what the log was warned of, which grows */
  constructor(warnings: Record<string, unknown>[], report: (law: Law, what: string) => void) {
    this.warnings = warnings;
    this.report = report;
  }

  /** Reads what the manifest before left. To be called while no process writes, and before another manifest is entered. */
  async look(store: CheckpointStore, former: ReadonlyMap<string, Identity>, tick: number): Promise<void> {
    const triggers = new Map((await store.views(functionName)).map(({ id, trigger }) => [id, trigger]));
    const waiting: Waiting[] = [];
    for (const header of await store.spillHeaders(functionName)) {
      const trigger = triggers.get(header.view);
      const isResync = header.pending?.causes.every(({ type }) => type === "Resync") ?? false;
      if (trigger === undefined || header.type === "Scheduled" || isResync) continue;
      const { pending, resourceVersion } = header;
      const identity = former.get(trigger);
      waiting.push({ trigger, identity, key: keyOf(header), isKey: pending !== undefined, resourceVersion });
    }
    this.waiting = waiting;
    this.since = tick;
    this.warned = this.warnings.length;
  }

  /** The manifest that comes after the look. */
  enter(phase: number): void {
    this.phase = phase;
  }

  /** When all is quiet, and no other manifest came since the look. */
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
    const { identity, trigger: name, key, isKey, resourceVersion } = waiting;
    const trigger = identity?.triggers.get(this.phase);
    const what = `${isKey ? "key" : `event @${resourceVersion}`} ${key} of ${name}`;
    if (!identity || !trigger) {
      this.report("waits", `${what}: its trigger is gone, and nobody says so`);
      return;
    }
    const told = identity.told.some((it) => it.key === key && it.tick > this.since && it.ended === "done");
    if (told) return;
    if (isReconciler) {
      if (isKey) this.report("waits", `${what} was not run`);
      return;
    }
    const real = parts.cluster.here(trigger.kind).get(key);
    const span = parts.spans.find((it) => it.phase === this.phase);
    if (!real || !span) return;
    const isWanted = wants({ ...span, trigger, isReconciler }, real, []);
    const isOfIt = isKey || String(real.rv) === resourceVersion;
    if (isWanted && isOfIt && trigger.changedFields.length === 0) this.report("waits", `${what} was not told`);
  }
}
