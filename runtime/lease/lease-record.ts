import { z } from "zod";

/** A metav1.MicroTime: RFC 3339 with six digits of a second. */
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
    })
    .nullish(),
});

/** A coordination.k8s.io/v1 Lease, as far as an election reads it. */
export interface LeaseRecord {
  readonly name: string;
  /** Of the object: a Lease that was deleted and made again counts its transitions anew. */
  readonly uid: string;
  readonly resourceVersion: string;
  /** "" where nobody holds it. */
  readonly holder: string;
  /** For how long after its last change nobody else may take it. */
  readonly durationMs: number;
  /** Raised each time that a process takes it: no two processes ever hold it under the same number. */
  readonly transitions: number;
  readonly annotations: Readonly<Record<string, string>>;
  /** The whole object, so that what others wrote into it survives our updates. */
  readonly object: z.infer<typeof leaseSchema>;
}

/** What an update changes. */
export interface LeaseChange {
  readonly holder?: string;
  readonly durationMs?: number;
  readonly transitions?: number;
  /** Wall time in milliseconds; read by people alone. */
  readonly renewedAt?: number;
  readonly acquiredAt?: number;
  /** Undefined takes one away. */
  readonly annotations?: Readonly<Record<string, string | undefined>>;
}

/** Reads a Lease that an API server sent. @throws ZodError where it is none */
export function readLease(object: unknown): LeaseRecord {
  const lease = leaseSchema.parse(object);
  const { holderIdentity, leaseDurationSeconds, leaseTransitions } = lease.spec ?? {};
  return {
    name: lease.metadata.name,
    uid: lease.metadata.uid,
    resourceVersion: lease.metadata.resourceVersion,
    holder: holderIdentity ?? "",
    durationMs: (leaseDurationSeconds ?? 0) * 1000,
    transitions: leaseTransitions ?? 0,
    annotations: lease.metadata.annotations ?? {},
    object: lease,
  };
}

/** The object with the change in it; the resourceVersion stays, so that the update fails where somebody came first. */
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
