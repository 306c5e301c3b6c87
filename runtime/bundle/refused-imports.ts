import { isBuiltin } from "node:module";
import type { OnResolveResult, PartialMessage, Plugin } from "esbuild";
import type { BuildFault } from "./build-fault.ts";

/** What stands in for a built-in that handlers reach for often. */
const substitutes: Readonly<Record<string, string>> = {
  fs: "a handler has no file system; keep state in the cluster, and put settings in `env`",
  "fs/promises": "a handler has no file system; keep state in the cluster, and put settings in `env`",
  http: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  https: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  net: "use `ctx.fetch`, and name the host under `egress` in the manifest",
  crypto: "use the global `crypto`",
  buffer: "use Uint8Array, TextEncoder and TextDecoder",
  url: "use the global `URL`",
  process: "use `ctx.env` for settings",
  child_process: "a handler cannot start processes",
  timers: "use the global setTimeout",
  "timers/promises": "wrap the global setTimeout in a promise",
  util: "use the language's own means, such as structuredClone",
};

/**
 * Refuses what no isolate can load, and finds `@watchfire/sdk` where none is installed beside the functions.
 * `resolveOwn` resolves a specifier from the runtime's own package.
 */
export function refusedImports(resolveOwn: (specifier: string) => string): Plugin {
  const seen = Symbol("resolved once");
  return {
    name: "watchfire",
    setup(build) {
      build.onResolve({ filter: /^@watchfire\/sdk(?:$|\/)/ }, async (args): Promise<OnResolveResult | undefined> => {
        if (args.pluginData === seen) return undefined;
        const { path: specifier, importer, resolveDir, kind } = args;
        const installed = await build.resolve(specifier, { importer, resolveDir, kind, pluginData: seen });
        return installed.errors.length === 0 ? installed : { path: resolveOwn(specifier) };
      });

      build.onResolve({ filter: /.*/ }, async (args): Promise<OnResolveResult | undefined> => {
        if (args.pluginData === seen || args.kind === "entry-point" || !isBuiltin(args.path)) return undefined;
        if (!args.path.startsWith("node:")) {
          // A package of the same name, such as `events`, may be installed for real.
          const { path: specifier, importer, resolveDir, kind } = args;
          const installed = await build.resolve(specifier, { importer, resolveDir, kind, pluginData: seen });
          if (installed.errors.length === 0 && !installed.external) return installed;
        }
        const name = args.path.replace(/^node:/, "");
        return {
          errors: [
            fault(`"${args.path}" is part of Node, and a handler runs without it`, {
              code: "WF_BUNDLE_NODE_BUILTIN",
              ...(substitutes[name] ? { hint: substitutes[name] } : {}),
            }),
          ],
        };
      });

      build.onResolve({ filter: /\.node$/ }, (args) => ({
        errors: [
          fault(`"${args.path}" is native code, which an isolate cannot load`, { code: "WF_BUNDLE_NATIVE_ADDON" }),
        ],
      }));
    },
  };
}

const fault = (text: string, detail: BuildFault): PartialMessage => ({ text, detail });
