import { z } from "zod";
import { type Clock, pause } from "../base/clock.ts";
import type { SourceState } from "../informer/fanout/observer.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { ListReason, ListReceiver, Subscriber } from "../informer/fanout/subscriber.ts";
import type { Informers, Watch } from "../informer/informers.ts";
import type { Change } from "../informer/scan/change.ts";
import type { Logger } from "../observe/log.ts";

/** Interval at which the informer's state is checked while waiting for the first list, in milliseconds. */
const lookMs = 250;

/** States in which the informer has explained why it cannot list. No set counts as paused then. */
const explained: ReadonlySet<SourceState> = new Set(["missing", "forbidden", "degraded"]);

/** Most FunctionSets of a namespace that are kept: ten times the sets that it may have. Others do not count. */
const mostSets = 1_000;

const objectSchema = z.looseObject({
  metadata: z.looseObject({ generation: z.number().optional() }),
  spec: z.looseObject({ paused: z.boolean().optional() }).optional(),
});

/** The lever of one FunctionSet. */
interface SetLever {
  readonly paused: boolean;
  readonly generation: number | undefined;
}

interface PausedSetsParts {
  readonly watches: Pick<Informers, "subscribe" | "status">;
  /** The namespace of the sets. */
  readonly namespace: string;
  /** Selector of the runtime's objects. */
  readonly labelSelector: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info">;
  /** Called when a set is paused, or no longer paused. */
  readonly changed: () => void;
}

/** Follows `spec.paused` of the FunctionSets of one namespace. */
export class PausedSets implements Subscriber {
  readonly id = "function-sets";
  /** Nothing is persisted over a restart, because the cluster has it. */
  readonly resumeFrom = undefined;
  readonly congested = undefined;
  private readonly parts: PausedSetsParts;
  private readonly spec: SourceSpec;
  private readonly levers = new Map<string, SetLever>();
  private readonly first = Promise.withResolvers<void>();
  private watch: Watch | undefined;
  private isListed = false;
  private heldEmpty = false;

  constructor(parts: PausedSetsParts) {
    this.parts = parts;
    const { namespace, labelSelector } = parts;
    this.spec = { apiVersion: "watchfire.dev/v1alpha1", kind: "FunctionSet", namespace, labelSelector };
  }

  /** The first call begins to watch. Resolves once it is known which sets are paused, or why it cannot be known. Rejects when the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    const { watches, clock } = this.parts;
    this.watch ??= watches.subscribe(this.spec, this);
    const key = sourceKey(this.spec);
    const state = () => watches.status().find((source) => sourceKey(source) === key)?.state ?? "discovering";
    while (!this.isListed && !explained.has(state())) {
      await Promise.race([this.first.promise, pause(clock, lookMs, signal)]);
    }
  }

  /** Returns `undefined` if the set has no FunctionSet yet. */
  of(set: string): SetLever | undefined {
    return this.levers.get(set);
  }

  change({ type, meta: { name }, body }: Change): void {
    this.put(name, type === "Deleted" ? undefined : leverIn(body));
  }

  bookmark(): void {}

  list(reason: ListReason): ListReceiver {
    const found = new Map<string, SetLever>();
    return {
      item: ({ meta: { name }, body }) => {
        if (found.size < mostSets) found.set(name, leverIn(body));
      },
      end: () => {
        // A server with an empty cache reports no objects; that is believed only when reported twice.
        if (found.size === 0 && this.levers.size > 0 && !this.heldEmpty && reason !== "crd-removed") {
          this.heldEmpty = true;
          return "held";
        }
        this.heldEmpty = false;
        for (const name of new Set([...this.levers.keys(), ...found.keys()])) this.put(name, found.get(name));
        this.isListed = true;
        this.first.resolve();
        return "counted";
      },
      abort: () => {},
    };
  }

  private put(name: string, lever: SetLever | undefined): void {
    const { namespace, log, changed } = this.parts;
    const before = this.levers.get(name)?.paused ?? false;
    if (!lever) this.levers.delete(name);
    else if (this.levers.size < mostSets || this.levers.has(name)) this.levers.set(name, lever);
    const now = this.levers.get(name)?.paused ?? false;
    if (now === before) return;
    log.info({ set: name, namespace }, now ? "set paused" : "set resumed");
    changed();
  }
}

/** A body that cannot be read pauses nothing. */
function leverIn(body: Uint8Array): SetLever {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    value = undefined;
  }
  const { data } = objectSchema.safeParse(value);
  return { paused: data?.spec?.paused ?? false, generation: data?.metadata.generation };
}
