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
