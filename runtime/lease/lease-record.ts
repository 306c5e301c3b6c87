import { z } from "zod";

/** Schema of a fence as stores record it. */
export const fenceSchema = z.object({
  /** The Lease's uid. */
  lease: z.string(),
  number: z.number(),
  /** When the Lease was taken, as the Lease says it. Absent in records of older runtimes. */
  acquired: z.string().optional(),
});

/** Fencing token: orders the processes that held a Lease. A higher number of the same Lease is later. */
export type Fence = Readonly<z.infer<typeof fenceSchema>>;

/** The fence under which a store is opened. */
export interface FenceOptions {
  readonly fence: Fence;
  /**
   * Raises the Lease's number above the one that a store has on record. Returns `undefined` if the Lease is lost. Default: the
   * store is not opened.
   */
  readonly raise?: ((above: number) => Promise<Fence | undefined>) | undefined;
  /**
   * Whether the Lease is held now. Checked before the store is taken over: fences of a Lease that was deleted and created again
   * cannot be compared. Default: it is held.
   */
  readonly holds?: (() => boolean) | undefined;
}

/** True if both are of one process: the Lease's number falls, and numbers recur, when etcd is restored from a backup. */
export const isSame = (one: Fence, other: Fence | undefined): boolean =>
  one.lease === other?.lease && one.number === other.number && one.acquired === other.acquired;

/** True if a store was opened by a later holder of the same Lease, or by another one of the same number. */
export const isOutrun = (own: Fence, by: Fence | undefined): by is Fence =>
  by?.lease === own.lease && by.number >= own.number && !isSame(own, by);

/** Formats a metav1.MicroTime: RFC 3339 with six digits of a second. */
export const microTime = (epochMs: number): string => new Date(epochMs).toISOString().replace("Z", "000Z");

const leaseSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string().min(1),
    resourceVersion: z.string().min(1),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
  spec: z
    .looseObject({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      leaseTransitions: z.number().nullish(),
      acquireTime: z.string().nullish(),
    })
    .nullish(),
});

/** The fields of a coordination.k8s.io/v1 Lease that an election reads. */
export interface LeaseRecord {
  readonly name: string;
  /** The object's uid. A Lease that was deleted and created again counts its transitions from the start. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** "" if it is free. */
  readonly holder: string;
  /** Milliseconds after its last change for which no other process may take it. */
  readonly durationMs: number;
  /** Increased each time a process takes it, so that two processes never hold it under the same number. */
  readonly transitions: number;
  /** When it was last taken; "" if it never was. */
  readonly acquired: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** The whole object, so that fields written by others survive updates. */
  readonly object: z.infer<typeof leaseSchema>;
}

/** Fields that an update changes. */
export interface LeaseChange {
  readonly holder?: string;
  readonly durationMs?: number;
  readonly transitions?: number;
  /** Wall time in milliseconds, for people only. */
  readonly renewedAt?: number;
  readonly acquiredAt?: number;
  /** An `undefined` value removes an annotation. */
  readonly annotations?: Readonly<Record<string, string | undefined>>;
}

export const fenceOf = ({ uid, transitions, acquired }: LeaseRecord): Fence => ({
  lease: uid,
  number: transitions,
  acquired,
});

/** Parses a Lease sent by an API server. @throws ZodError if it is not a Lease */
export function readLease(object: unknown): LeaseRecord {
  const lease = leaseSchema.parse(object);
  const { holderIdentity, leaseDurationSeconds, leaseTransitions, acquireTime } = lease.spec ?? {};
  return {
    name: lease.metadata.name,
    uid: lease.metadata.uid,
    resourceVersion: lease.metadata.resourceVersion,
    holder: holderIdentity ?? "",
    durationMs: (leaseDurationSeconds ?? 0) * 1000,
    transitions: leaseTransitions ?? 0,
    acquired: acquireTime ?? "",
    annotations: lease.metadata.annotations ?? {},
    object: lease,
  };
}

/**
 * Returns the object with the change applied. The resourceVersion is kept, so that the update fails if another process wrote
 * first.
 */
export function changedLease(
  { metadata, spec, ...rest }: { readonly metadata: object; readonly spec?: object | null | undefined },
  { holder, durationMs, transitions, renewedAt, acquiredAt, annotations }: LeaseChange,
): object {
  const before = "annotations" in metadata && typeof metadata.annotations === "object" ? metadata.annotations : {};
  const after = Object.entries({ ...before, ...annotations }).filter(([, value]) => value !== undefined);
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    ...rest,
    metadata: { ...metadata, ...(annotations && { annotations: Object.fromEntries(after) }) },
    spec: {
      ...spec,
      ...(holder !== undefined && { holderIdentity: holder }),
      ...(durationMs !== undefined && { leaseDurationSeconds: durationMs / 1000 }),
      ...(transitions !== undefined && { leaseTransitions: transitions }),
      ...(renewedAt !== undefined && { renewTime: microTime(renewedAt) }),
      ...(acquiredAt !== undefined && { acquireTime: microTime(acquiredAt) }),
    },
  };
}
