import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { buildInService } from "../../bundle/build-service.ts";

let script: Promise<string> | undefined;

/** Returns the guest's bootstrap as one script. Built once per process. */
export function guestScript(): Promise<string> {
  script ??= bundle().catch((error: unknown) => {
    script = undefined; // no failure is kept
    throw error;
  });
  return script;
}

async function bundle(): Promise<string> {
  return `${await built("bootstrap", "iife", [librariesApart])}\n;undefined`;
}

/**
 * An esbuild plugin that bundles the libraries as one function. If their functions were part of the bootstrap, it would create
 * all of them in each isolate, which took a third of its run time.
 */
const librariesApart: Plugin = {
  name: "libraries",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/libraries\.guest\.ts$/ }, () => ({ path: "libraries", namespace: "apart" }));
    onLoad({ filter: /.*/, namespace: "apart" }, async () => ({ contents: await built("libraries", "cjs") }));
  },
};

async function built(name: string, format: "iife" | "cjs", plugins: Plugin[] = []): Promise<string> {
  const result = await buildInService({
    entryPoints: [fileURLToPath(new URL(`../guest/${name}.guest.ts`, import.meta.url))],
    bundle: true,
    write: false,
    format,
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["import", "module"],
    // Libraries check whether a buffer is shared, which is never so in an isolate.
    inject: [fileURLToPath(new URL("../guest/shared-memory.guest.ts", import.meta.url))],
    target: "chrome136",
    minifyWhitespace: true,
    legalComments: "none",
    // V8 stores a text with one character beyond Latin-1 at two bytes per character, in every isolate: 0.5 MiB.
    charset: "ascii",
    logLevel: "silent",
    plugins,
  });
  return result.outputFiles[0]?.text ?? "";
}
