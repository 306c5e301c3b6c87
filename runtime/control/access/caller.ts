import { clean } from "../../base/wording.ts";
import type { ReviewedAccount } from "../../kube/token-review.ts";

/** A caller of the runtime: whoever has the data folder's token, or an account of the cluster. */
export type ApiCaller =
  | { readonly kind: "token" }
  | {
      readonly kind: "account";
      readonly account: ReviewedAccount;
      /** When its token ends, in epoch milliseconds; `undefined` if the token does not say. */
      readonly until: number | undefined;
    };

/** The caller with the data folder's token, who may do all. */
export const tokenCaller: ApiCaller = { kind: "token" };

/** Most characters of an account's name in a log line. */
const nameLimit = 256;

/** The caller's name for the log and for people. */
export const nameOf = (caller: ApiCaller): string =>
  caller.kind === "token" ? "the data folder's token" : clean(caller.account.name).slice(0, nameLimit);
