import { z } from "zod";
import type { LastLook } from "../../kube/last-look.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import {
  type Condition,
  conditionSchema,
  type FunctionShare,
  type FunctionSpec,
  shareSchema,
  type statusOf,
} from "./function-object.ts";
import { LabelledObjects } from "./labelled-objects.ts";

const pageSchema = z.looseObject({
  metadata: z.looseObject({ continue: z.string().optional() }),
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string(), uid: z.string().default("") }),
      spec: z.unknown(),
      status: z
        .looseObject({
          conditions: z.array(conditionSchema).default([]),
          // An unreadable share counts as one that has not been written.
          shares: z.record(z.string(), shareSchema.nullable().catch(null)).default({}),
          reason: z.string().optional(),
          deadLetters: z.number().optional(),
        })
        .optional(),
    }),
  ),
});

/** An existing Function object. */
interface FoundFunction {
  readonly name: string;
  readonly uid: string;
  readonly conditions: readonly Condition[];
  /** The shares written by replicas, by replica name; null if one cannot be read. */
  readonly shares: ReadonlyMap<string, FunctionShare | null>;
  readonly reason: string | undefined;
  readonly deadLetters: number | undefined;
}

/** The Function objects of one runtime in its namespace. */
export class FunctionObjects {
  private readonly objects: LabelledObjects;

  /** `lastLook` is checked as each write is sent. Default: every write is sent. */
  constructor(transport: KubeTransport, namespace: string, account: string, lastLook?: LastLook) {
    const kind = { kind: "Function", plural: "functions" } as const;
    this.objects = new LabelledObjects(kind, { transport, namespace, account, lastLook });
  }

  /** Returns the objects with this runtime's label: the one with the given name, or all. */
  async list(signal: AbortSignal, name?: string): Promise<FoundFunction[]> {
    const found = await this.objects.list((page) => pageSchema.parse(page), signal, name);
    return found.map(({ metadata: { name, uid }, status }) => ({
      name,
      uid,
      conditions: (status?.conditions ?? []) as unknown as Condition[],
      shares: new Map(Object.entries(status?.shares ?? {})),
      reason: status?.reason,
      deadLetters: status?.deadLetters,
    }));
  }

  /** Returns false if an object of this name belongs to someone else. */
  create(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<boolean> {
    return this.objects.create(name, spec, signal);
  }

  /** Returns false if the object is gone. */
  setSpec(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<boolean> {
    return this.objects.setSpec(name, spec, signal);
  }

  /** Null values in `shares` remove replicas' shares. Returns false if the object is gone. */
  setStatus(
    name: string,
    status: ReturnType<typeof statusOf> & { readonly shares?: Readonly<Record<string, null>> },
    signal: AbortSignal,
  ): Promise<boolean> {
    return this.objects.setStatus(name, status, signal);
  }

  /** Writes a replica's share and leaves everything else unchanged. Returns false if the object does not exist yet. */
  setShare(name: string, replica: string, share: FunctionShare, signal: AbortSignal): Promise<boolean> {
    return this.objects.setStatus(name, { shares: { [replica]: share } }, signal);
  }

  delete(name: string, signal: AbortSignal): Promise<void> {
    return this.objects.delete(name, signal);
  }
}
