import { WatchfireError } from "../errors.ts";
import type { FunctionDesk } from "../observe/function-desk.ts";
import type { Logger } from "../observe/log.ts";
import { suggest } from "../suggest.ts";
import type { ActiveComponents } from "./components.ts";

export interface FunctionDeskParts {
  /** The names of all functions that `/status` tells of. */
  readonly known: () => readonly string[];
  /** @throws WatchfireError WF_LEASE_STANDBY */
  readonly acting: () => Pick<ActiveComponents, "pauses">;
  readonly log: Pick<Logger, "info">;
}

/** What the commands on one function do, over the endpoints. */
export function functionDesk({ known, acting, log }: FunctionDeskParts): FunctionDesk {
  const of = (name: string) => {
    const active = acting();
    const names = known();
    if (!names.includes(name)) throw noSuchFunction(name, names);
    return active;
  };
  return {
    pause: async (name) => {
      const { pauses } = of(name);
      const changed = await pauses.pause(name);
      if (changed) log.info({ function: name }, "function paused");
      const says = changed ? "is paused: what happens waits, in order" : "was paused by a command before";
      return { changed, says: `${name} ${says}` };
    },
    resume: async (name) => {
      const { pauses } = of(name);
      const changed = await pauses.resume(name);
      if (changed) log.info({ function: name }, "function resumed");
      return { changed, says: `${name} ${changed ? "goes on" : "was not paused"}` };
    },
  };
}

/** Of a name that the runtime does not have. */
export function noSuchFunction(name: string, names: readonly string[]): WatchfireError {
  const meant = suggest(name, names);
  return new WatchfireError("WF_RUNTIME_NO_FUNCTION", {
    what: "the runtime has no function of this name",
    actual: name,
    ...(meant !== undefined && { hint: `did you mean ${meant}?` }),
  });
}
