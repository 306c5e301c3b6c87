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
    read() {
      if (!existsSync(path)) return undefined;
      try {
        return parseEnv(readFileSync(path, "utf8")) as Record<string, string>;
      } catch (cause) {
        const what = `it cannot be read: ${systemReason(cause)}`;
        throw new WatchfireError("WF_ACCESS_ENV", { what, place: { file }, cause });
      }
    },
  };
}
