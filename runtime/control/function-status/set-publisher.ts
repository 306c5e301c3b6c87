import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../observe/log.ts";
import { type Condition, conditionSchema } from "./function-object.ts";
import type { FunctionObjects } from "./function-objects.ts";
import type { LabelledObjects } from "./labelled-objects.ts";
import { ObjectPublisher, type RoundPlan } from "./object-publisher.ts";
import { type SetFunction, type SetReport, setStatusOf } from "./set-object.ts";

const pageSchema = z.looseObject({
  metadata: z.looseObject({ continue: z.string().optional() }),
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      status: z.looseObject({ conditions: z.array(conditionSchema).default([]) }).optional(),
    }),
  ),
});

/** The sets of one namespace to publish at one moment. */
export interface SetPublication extends Pick<RoundPlan, "isGone" | "held"> {
  readonly sets: readonly Omit<SetReport, "functions" | "record">[];
  /** The state of each function, by name. `undefined`: other replicas run some, so the Function objects say it. */
  readonly functions: ReadonlyMap<string, SetFunction> | undefined;
}

interface SetPublisherOptions {
  readonly objects: LabelledObjects;
  /** The Function objects of the same namespace. */
  readonly functions: FunctionObjects;
  readonly account: string;
  readonly read: () => SetPublication;
  /** Returns the record of a set's revision. Rejects if it cannot be read. */
  readonly recordOf: (set: string, revision: number | undefined) => Promise<SetReport["record"]>;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** The last written state of a set. The status is `undefined` if it is unknown. */
interface PublishedSet {
  status?: string;
  conditions: readonly Condition[];
}

/** Keeps one FunctionSet object per set up to date. `spec.paused` is the user's, and is never written. */
export class SetPublisher extends ObjectPublisher<PublishedSet> {
  private readonly options: SetPublisherOptions;

  constructor(options: SetPublisherOptions) {
    super({ what: "set", ...options });
    this.options = options;
  }

  protected async plan(signal: AbortSignal): Promise<RoundPlan> {
    const { sets, functions, isGone, held } = this.options.read();
    const states = functions ?? (sets.length > 0 ? await this.statesInCluster(signal) : new Map());
    const writes = sets.map((each) => ({
      name: each.state.name,
      write: async (stop: AbortSignal) => {
        const { name, revision } = each.state;
        const record = await this.options.recordOf(name, revision).catch(() => undefined);
        const of = each.state.functions.map((one): SetFunction => states.get(one) ?? { name: one, ready: false });
        await this.publish({ ...each, record, functions: of }, stop);
      },
    }));
    return { writes, isGone, held };
  }

  protected async list(signal: AbortSignal, name?: string): Promise<Map<string, PublishedSet>> {
    const found = await this.options.objects.list((page) => pageSchema.parse(page), signal, name);
    return new Map(
      found.map(({ metadata, status }) => [
        metadata.name,
        { conditions: (status?.conditions ?? []) as unknown as Condition[] },
      ]),
    );
  }

  private async statesInCluster(signal: AbortSignal): Promise<ReadonlyMap<string, SetFunction>> {
    const found = await this.options.functions.list(signal);
    return new Map(
      found.map(({ name, conditions, reason, deadLetters }) => {
        const ready = conditions.some(({ type, status }) => type === "Ready" && status === "True");
        return [name, { name, ready, reason, deadLetters }];
      }),
    );
  }

  private async publish(report: SetReport, signal: AbortSignal): Promise<void> {
    const { objects, account, clock } = this.options;
    const { name } = report.state;
    const spec = { runtime: account };
    const known = this.published?.get(name) ?? (await this.create(name, spec, { conditions: [] }, signal));
    if (!known) return;
    const status = setStatusOf(report, known.conditions, clock.now());
    if (known.status === JSON.stringify(status)) return;
    if (!(await objects.setStatus(name, status, signal))) return this.forget(name);
    known.status = JSON.stringify(status);
    known.conditions = status.conditions;
  }
}
