import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";

/** Creates the error for a name that the runtime does not have. */
export function noSuchFunction(name: string, names: readonly string[]): WatchfireError {
  const meant = suggest(name, names);
  return new WatchfireError("WF_RUNTIME_NO_FUNCTION", {
    what: "the runtime has no function of this name",
    actual: name,
    ...(meant !== undefined && { hint: `did you mean ${meant}?` }),
  });
}
