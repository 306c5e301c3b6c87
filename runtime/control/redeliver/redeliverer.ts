import { pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { systemReason } from "../../base/wording.ts";
import type { FunctionDispatch, Redelivery } from "../../engine/function-dispatch.ts";
import type { PastRun } from "../../engine/history/history.ts";
import { acceptHeader, ObjectIdentity, type SourceSpec, selectorQuery } from "../../informer/fanout/source-spec.ts";
import { listCollection } from "../../informer/list/list.ts";
import { type Change, objectKey } from "../../informer/scan/change.ts";
import type { DeadLetterSummary } from "../../journal/batch.ts";
import { type DeadLetterPage, deadLetterPageSize } from "../../journal/checkpoint.ts";
import { resourcePath } from "../../kube/resource.ts";
import type { Trigger } from "../../manifest/function.ts";
import { isChange } from "../../manifest/function.ts";
import { type LiveObject, type LookParts, lookAt } from "../explain/live-look.ts";

/** Maximum number of lookups of one object while newer events of it are expected, and milliseconds between them. */
const look = { most: 12, apartMs: 250 } as const;
/** Timeout of the lists of all objects, in milliseconds. */
const listMs = 30 * 60_000;

export interface RedelivererParts extends LookParts {
  readonly deadLetters: {
    list(page: DeadLetterPage): Promise<readonly DeadLetterSummary[]>;
    replay(letters: readonly string[]): Promise<unknown>;
  };
}

/** A run of an earlier process. Not one of a schedule. */
export type EarlierRun = Pick<PastRun, "id" | "trigger" | "key" | "type" | "resourceVersion">;

/** The function whose events are redelivered. */
export interface RedeliveryTarget {
  readonly name: string;
  readonly triggers: readonly Trigger[];
  readonly dispatch: FunctionDispatch;
  /** Returns the source of a trigger in a namespace; "" means all namespaces. */
  sourceOf(trigger: Trigger, namespace: string): SourceSpec;
}

/** Number of objects by result, counted once for each trigger that reads them. */
export type RedeliveryCounts = Map<Redelivery, number>;

const add = (tally: RedeliveryCounts, became: Redelivery) => tally.set(became, (tally.get(became) ?? 0) + 1);

/** Redelivers events to a function's handler: of one object, of all objects that its triggers select, or of one run. */
export class Redeliverer {
  private readonly parts: RedelivererParts;

  constructor(parts: RedelivererParts) {
    this.parts = parts;
  }

  /** Redelivers an object's current state, for each trigger that selects it. @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED */
  async object(of: RedeliveryTarget, object: Pick<Change["meta"], "namespace" | "name">): Promise<RedeliveryCounts> {
    assertWatches(of, shown(objectKey(object)));
    const tally: RedeliveryCounts = new Map();
    const whys: string[] = [];
    for (const trigger of of.triggers) {
      const { position } = await of.dispatch.object(trigger.name, object);
      const became = position
        ? await this.deliver(of, trigger, object)
        : { why: `it does not read ${object.namespace === "" ? "objects without a namespace" : object.namespace}` };
      if (typeof became === "string") add(tally, became);
      else whys.push(`by the trigger ${trigger.name}, ${became.why}`);
    }
    if (tally.size === 0) throw refused(whys.join("; "), shown(objectKey(object)));
    await of.dispatch.saved();
    return tally;
  }

  /**
   * Redelivers the current state of every object that the triggers select. Results are counted in `tally` as it proceeds.
   * @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED
   */
  async all(of: RedeliveryTarget, tally: RedeliveryCounts): Promise<void> {
    const { triggers, dispatch, sourceOf } = of;
    assertWatches(of, of.name);
    for (const trigger of triggers) {
      for (const namespace of dispatch.namespaces(trigger.name)) {
        const item = (change: Change) => {
          if (dispatch.concerns(trigger.name, change)) add(tally, dispatch.redeliver(trigger.name, change));
        };
        await this.list(sourceOf(trigger, namespace), item, () => dispatch.congested);
      }
    }
    await dispatch.saved();
  }

  /**
   * Repeats a run: from its dead letter, or with its object if that is unchanged.
   * @param earlier the run in the history, which the engine may no longer have
   * @throws WatchfireError WF_RUNTIME_NO_RUN, WF_RUNTIME_NOT_REDELIVERED, or why the letter cannot be replayed
   */
  async run(
    { name, dispatch, triggers, sourceOf }: RedeliveryTarget,
    id: string,
    earlier?: EarlierRun,
  ): Promise<RedeliveryCounts> {
    const letter = await this.letterOf(name, id);
    if (letter) {
      await this.parts.deadLetters.replay([letter.letter]);
      return new Map([["queued", 1]]);
    }
    const last = [...dispatch.runs].find((each) => each.id === id);
    if (last && !isChange(last.type)) {
      const became = dispatch.runAgain(last);
      await dispatch.saved();
      return new Map([[became, 1]]);
    }
    const run = last ?? earlier;
    const trigger = run && triggers.find((each) => each.name === run.trigger);
    if (!run || !trigger) {
      throw new WatchfireError("WF_RUNTIME_NO_RUN", {
        what: `no recent run of ${name}, and no dead letter of it, has this ID`,
        actual: id,
      });
    }
    const [namespace = "", object = ""] = run.key.split("/");
    const found = await this.look(sourceOf(trigger, namespace), object);
    const isSame = found.type === "there" && found.change.meta.resourceVersion === run.resourceVersion;
    if (!isSame || run.type === "Deleted") {
      const state = found.type === "there" ? "has changed since" : "is not there any more";
      const hint = `deliver the present state by \`watchfire redeliver ${name} --object ${shown(run.key)}\``;
      throw refused(`the object ${state}, and a run is not repeated with an old state`, id, hint);
    }
    const became = dispatch.redeliver(trigger.name, found.change, run);
    await dispatch.saved();
    return new Map([[became, 1]]);
  }

  /** Runs a schedule at once. @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED if another shard has it */
  async schedule({ dispatch }: Pick<RedeliveryTarget, "dispatch">, trigger: string): Promise<RedeliveryCounts> {
    const became = dispatch.runNow(trigger);
    if (became === undefined) throw refused("another shard of the function has the schedule", trigger);
    await dispatch.saved();
    return new Map([[became, 1]]);
  }

  /** Reports on one object, once its own events have been received. */
  private async deliver(
    { dispatch, sourceOf }: RedeliveryTarget,
    trigger: Trigger,
    { namespace, name }: Pick<Change["meta"], "namespace" | "name">,
  ): Promise<Redelivery | { readonly why: string }> {
    for (let looks = 1; ; looks++) {
      const found = await this.look(sourceOf(trigger, namespace), name);
      if (found.type === "gone") return { why: "there is no such object" };
      if (found.type !== "there") return found;
      if (!found.labels || !found.fields) return { why: "its selectors do not choose the object" };
      if (!dispatch.concerns(trigger.name, found.change)) return { why: "another shard has the object" };
      const became = dispatch.redeliver(trigger.name, found.change);
      if (became !== "news" || looks === look.most) return became;
      await pause(this.parts.clock, look.apartMs);
    }
  }

  private look(spec: SourceSpec, name: string): Promise<LiveObject> {
    return lookAt({ spec, name }, this.parts);
  }

  /** @throws WatchfireError WF_RUNTIME_NOT_REDELIVERED if the source cannot be listed */
  private async list(
    spec: SourceSpec,
    item: (change: Change) => void,
    congested: () => Promise<void> | undefined,
  ): Promise<void> {
    const { discovery, transport, clock } = this.parts;
    try {
      const found = await discovery.resolve(spec.apiVersion, spec.kind);
      if (found.type !== "Served") throw new Error(found.reason);
      await listCollection({
        transport,
        clock,
        path: resourcePath(found.resource, spec.namespace ?? ""),
        query: selectorQuery(spec),
        headers: acceptHeader(spec, "list"),
        identity: new ObjectIdentity(found.resource, spec.representation),
        from: {},
        paged: true,
        signal: AbortSignal.timeout(listMs),
        congested,
        item,
      });
    } catch (error) {
      throw refused(`${spec.kind} cannot be listed: ${systemReason(error)}`, spec.namespace || undefined);
    }
  }

  private async letterOf(name: string, id: string): Promise<DeadLetterSummary | undefined> {
    for (let after: string | undefined; ; ) {
      const letters = await this.parts.deadLetters.list({ function: name, after });
      const found = letters.find((letter) => letter.id === id);
      if (found || letters.length < deadLetterPageSize) return found;
      after = letters.at(-1)?.letter;
    }
  }
}

/** Formats a key for a person: only the name if it has no namespace. */
const shown = (key: string): string => key.replace(/^\//, "");

const refused = (what: string, actual?: string, hint?: string): WatchfireError =>
  new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", { what, actual, ...(hint !== undefined && { hint }) });

/** Refuses functions that only have schedules, which concern no object: a scheduled time is redelivered by its run. */
function assertWatches({ name, triggers }: RedeliveryTarget, actual: string): void {
  if (triggers.length > 0) return;
  const hint = `\`watchfire runs ${name}\` shows the runs, and \`watchfire redeliver ${name} --run ID\` delivers one again`;
  throw refused("the function has only schedules, which have no object", actual, hint);
}
