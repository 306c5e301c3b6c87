import { WatchfireError } from "../base/errors.ts";
import type { Reads } from "../reads/reads.ts";
import type { ArgumentsOf } from "./arguments.ts";
import { type CallFailure, invalid, withheld } from "./failure.ts";

/** The operations of `ctx.cache`. */
export type CacheOperation = "cache.get" | "cache.list" | "cache.age";

export const isCacheOperation = (operation: string): operation is CacheOperation => operation.startsWith("cache.");

/** Answers from memory, with JSON text. Refuses kinds that the manifest's `reads` does not name. @throws CallFailure */
export function answerFromCache<Name extends CacheOperation>(
  reads: Pick<Reads, "get" | "list" | "age"> | undefined,
  functionName: string,
  operation: Name,
  args: ArgumentsOf<Name>,
): string {
  try {
    if (!reads) throw new WatchfireError("WF_READS_UNDECLARED", { what: "this runtime has no object cache" });
    if (operation === "cache.get") return reads.get(functionName, (args as ArgumentsOf<"cache.get">).ref);
    if (operation === "cache.list") return reads.list(functionName, args as ArgumentsOf<"cache.list">);
    return reads.age(functionName, args as ArgumentsOf<"cache.age">);
  } catch (error) {
    throw error instanceof WatchfireError ? failureOf(error) : error;
  }
}

const failureOf = (fault: WatchfireError): CallFailure =>
  fault.code === "WF_READS_UNDECLARED" ? withheld(fault) : invalid(fault.message);
