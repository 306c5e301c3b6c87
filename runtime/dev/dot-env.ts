import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseEnv } from "node:util";
import type { LocalEnv } from "../access/env.ts";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";

/** Returns the `.env` next to a functions folder. It is read at each look, because people edit it while functions run. */
export function dotEnv(functions: string): LocalEnv {
  const path = join(dirname(resolve(functions)), ".env");
  const file = relative(process.cwd(), path);
  return {
    file,
    read(name) {
      if (!existsSync(path)) return undefined;
      try {
        return variablesOf(name, parseEnv(readFileSync(path, "utf8")) as Record<string, string>);
      } catch (cause) {
        const what = `it cannot be read: ${systemReason(cause)}`;
        throw new WatchfireError("WF_ACCESS_ENV", { what, place: { file }, cause });
      }
    },
  };
}

/** Returns all variables, where `CRASH_NOTIFY__URL` is the `URL` of the function `crash-notify` and precedes a common `URL`. */
function variablesOf(name: string, all: Readonly<Record<string, string>>): Record<string, string> {
  const prefix = `${name.replace(/[^a-z0-9]/gi, "_").toUpperCase()}__`;
  const own = Object.entries(all).flatMap(([key, value]) =>
    key.startsWith(prefix) ? [[key.slice(prefix.length), value] as const] : [],
  );
  return { ...all, ...Object.fromEntries(own) };
}
