import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { buildInService } from "../../bundle/build-service.ts";

let script: Promise<string> | undefined;

/** The guest's bootstrap as one script. Built once per process. */
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
 * With the libraries' functions among its own, the bootstrap would make all of them in each isolate. That was a third of
 * its run.
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
    // Libraries ask whether a buffer is shared; no isolate has one.
    inject: [fileURLToPath(new URL("../guest/shared-memory.guest.ts", import.meta.url))],
    target: "chrome136",
    minifyWhitespace: true,
    legalComments: "none",
    // V8 keeps a text with one character beyond Latin-1 at two bytes each, in every isolate: 0.5 MiB.
    charset: "ascii",
    logLevel: "silent",
    plugins,
  });
  return result.outputFiles[0]?.text ?? "";
}
