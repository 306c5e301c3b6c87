import { isBuiltin } from "node:module";
import type { OnResolveArgs, OnResolveResult, PartialMessage, Plugin, ResolveResult } from "esbuild";
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
 * `lenient`: what cannot be imported is empty instead, so that a build that has failed tells what else is wrong.
 */
export function refusedImports(resolveOwn: (specifier: string) => string, lenient = false): Plugin {
  const seen = Symbol("resolved once");
  return {
    name: "watchfire",
    setup(build) {
      const installed = ({ path, importer, resolveDir, kind }: OnResolveArgs): Promise<ResolveResult> =>
        build.resolve(path, { importer, resolveDir, kind, pluginData: seen });

      build.onResolve({ filter: /^@watchfire\/sdk(?:$|\/)/ }, async (args): Promise<OnResolveResult | undefined> => {
        if (args.pluginData === seen) return undefined;
        const theirs = await installed(args);
        return theirs.errors.length === 0 ? theirs : { path: resolveOwn(args.path) };
      });

      build.onResolve({ filter: /.*/ }, async (args): Promise<OnResolveResult | undefined> => {
        if (args.pluginData === seen || args.kind === "entry-point") return undefined;
        const builtin = isBuiltin(args.path);
        const native = args.path.endsWith(".node");
        if (!lenient && !builtin && !native) return undefined;
        // A package of the same name as a built-in, such as `events`, may be installed for real.
        const theirs = native || args.path.startsWith("node:") ? undefined : await installed(args);
        if (theirs?.errors.length === 0 && !theirs.external) return theirs;
        if (lenient) return { path: args.path, namespace: emptyNamespace };
        return { errors: [native ? nativeFault(args.path) : builtinFault(args.path)] };
      });

      build.onLoad({ filter: /.*/, namespace: emptyNamespace }, () => ({ contents: "module.exports = {};" }));
    },
  };
}

/** What cannot be imported, in a lenient build. CommonJS: any name can be imported from it. */
const emptyNamespace = "watchfire-empty";

function builtinFault(specifier: string): PartialMessage {
  const hint = substitutes[specifier.replace(/^node:/, "")];
  return fault(`"${specifier}" is part of Node, and a handler runs without it`, {
    code: "WF_BUNDLE_NODE_BUILTIN",
    ...(hint === undefined ? {} : { hint }),
  });
}

const nativeFault = (specifier: string): PartialMessage =>
  fault(`"${specifier}" is native code, which an isolate cannot load`, { code: "WF_BUNDLE_NATIVE_ADDON" });

const fault = (text: string, detail: BuildFault): PartialMessage => ({ text, detail });
