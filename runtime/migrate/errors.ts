import { WatchfireError } from "../base/errors.ts";

/** Positions are not where they are looked for. */
export const elsewhere = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what });

/** Positions are in another place, and are waited for. */
export const awaited = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_AWAITED", { what });
