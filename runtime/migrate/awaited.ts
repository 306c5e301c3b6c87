import { WatchfireError } from "../base/errors.ts";

/** Positions are in another place, and are waited for. */
export const awaited = (what: string): WatchfireError => new WatchfireError("WF_CHECKPOINT_AWAITED", { what });
