import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { requiredFlags } from "./executor/requirements.ts";

/** A program for Node: its flags, then its file. */
export type Program = readonly string[];

/** The executor's program: it speaks over descriptor 3. In an image both are JavaScript, bundled. */
export function executorProgram(): Program {
  const main = fileURLToPath(new URL(`./executor/main${extname(import.meta.url)}`, import.meta.url));
  return [...requiredFlags, ...permissionFlags(main), "--disable-warning=ExperimentalWarning", main];
}

/** How an executor is started: nothing of the starter's environment, folder or files; under a name of its own in `ps`. */
export const executorSurroundings = { cwd: "/", env: { TZ: "UTC" }, argv0: "watchfire executor" } as const;

/** Node's own permission model as a further wall: the executor may read its code and nothing else, and start nothing. */
function permissionFlags(main: string): string[] {
  const require = createRequire(import.meta.url);
  const isolatedVm = dirname(realpathSync(require.resolve("isolated-vm/package.json")));
  const loader = dirname(
    realpathSync(createRequire(`${isolatedVm}/package.json`).resolve("node-gyp-build/package.json")),
  );
  const own = resolve(dirname(main), "..");
  return [
    "--permission",
    "--allow-addons",
    // The loader of native code looks at the last one to tell musl from glibc.
    ...[own, resolve(own, "../package.json"), isolatedVm, loader, "/etc/alpine-release"].map(
      (path) => `--allow-fs-read=${path}`,
    ),
  ];
}
