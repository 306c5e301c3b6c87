import { WatchfireError } from "../base/errors.ts";

/** Positions are to be in a store, and are not. Were it opened, the next start would take it for all that there was. */
export const notThere = (what: string): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_ELSEWHERE", { what: `${what}, though the Lease says so` });
