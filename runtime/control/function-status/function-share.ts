import { z } from "zod";
import { messageLimit } from "./function-object.ts";
import type { FunctionReport } from "./function-report.ts";
import { reasons } from "./reason.ts";

/** Where the parts of a function are, of which this replica has one. */
export interface Sharing {
  /** The name of this replica, and the term of its process: `<identity>#<term>`. */
  readonly replica: string;
  /** The function's first shard is here: this replica tells how the whole stands, and others how their parts do. */
  readonly isFirst: boolean;
  /** Its slots that are here. */
  readonly here: readonly number[];
  /** Its other slots, and the replica that has each, named alike; "" where none does. */
  readonly elsewhere: ReadonlyMap<number, string>;
}

/** A replica's part of a function, as it is kept in the object's status under the replica's name. */
export interface FunctionShare {
  readonly slots: readonly number[];
  readonly ready: boolean;
  readonly lagSeconds: number;
  readonly lastEvent: string | null;
  readonly failures: number;
  readonly deadLetters: number;
  readonly queued: number;
  readonly reason: string | null;
  readonly message: string | null;
}

/** A share as it is found; what another version writes beside it is no matter. */
export const foundShare = z.object({
  slots: z.array(z.number()),
  ready: z.boolean(),
  lagSeconds: z.number(),
  lastEvent: z.string().nullish(),
  failures: z.number(),
  deadLetters: z.number(),
  queued: z.number(),
  reason: z.enum(reasons).nullish().catch("InternalError"),
  message: z.string().nullish(),
});

export type FoundShare = z.infer<typeof foundShare>;

export const shareOf = (report: FunctionReport, slots: readonly number[]): FunctionShare => ({
  slots,
  ready: report.ready,
  lagSeconds: Math.floor(report.lagSeconds),
  lastEvent: report.lastEvent ?? null,
  failures: report.failures,
  deadLetters: report.deadLetters,
  queued: report.queued + report.inFlight + report.spilled,
  reason: report.reason ?? null,
  message: report.message?.slice(0, messageLimit) ?? null,
});

/**
 * How a function stands as a whole: counts are added up, and what is worst of any part stands for all.
 * @param report of the part that is here
 * @param shares as replicas have written them. One counts while its replica has the slots that it is of.
 */
export function wholeReport(
  report: FunctionReport,
  elsewhere: Sharing["elsewhere"],
  shares: ReadonlyMap<string, FoundShare | null>,
): FunctionReport {
  const owners = [...Map.groupBy(elsewhere, ([, owner]) => owner)];
  return owners.reduce((whole, [owner, slots]) => {
    const share = shares.get(owner);
    return slots.every(([slot]) => share?.slots.includes(slot)) && share
      ? withShare(whole, share)
      : withShare(whole, untold(owner, slots[0]?.[0] ?? 0));
  }, report);
}

const untold = (owner: string, slot: number): FoundShare => ({
  slots: [slot],
  ready: false,
  lagSeconds: 0,
  failures: 0,
  deadLetters: 0,
  queued: 0,
  reason: "Starting",
  message:
    owner === ""
      ? `no replica has slot ${slot} yet`
      : `${owner.replace(/#\d+$/, "")} has slot ${slot}, and has not told how it stands there`,
});

function withShare(whole: FunctionReport, share: FoundShare): FunctionReport {
  const { reason, message, code, ...counts } = whole;
  const words =
    gravity(share) > gravity(whole)
      ? { ...(share.reason && { reason: share.reason }), ...(share.message && { message: share.message }) }
      : { ...(reason && { reason }), ...(message !== undefined && { message }), ...(code && { code }) };
  return {
    ...counts,
    ...words,
    ready: whole.ready && share.ready,
    lagSeconds: Math.max(whole.lagSeconds, share.lagSeconds),
    failures: whole.failures + share.failures,
    deadLetters: whole.deadLetters + share.deadLetters,
    queued: whole.queued + share.queued,
    ...newest(whole.lastEvent, share.lastEvent ?? undefined),
  };
}

/** A part that does not run says more than one that runs with a remark. */
const gravity = ({ ready, reason }: Pick<FoundShare, "ready" | "reason">): number => (ready ? 0 : 2) + (reason ? 1 : 0);

/** ISO 8601 texts compare as times do. */
const newest = (a: string | undefined, b: string | undefined): { lastEvent?: string } => {
  const last = a !== undefined && b !== undefined && a > b ? a : (b ?? a);
  return last === undefined ? {} : { lastEvent: last };
};
