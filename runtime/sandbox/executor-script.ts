import type { Plugin } from "esbuild";

let script: Promise<string> | undefined;

/** Returns the executor's program, whose entry file is `main`, bundled as one JavaScript script. Built once per process. */
export function executorScript(main: string): Promise<string> {
  script ??= bundle(main).catch((error: unknown) => {
    script = undefined; // a failed build is retried
    throw error;
  });
  return script;
}

async function bundle(main: string): Promise<string> {
  const { programScript } = await import("../bundle/program-script.ts");
  return programScript(main, [isolatedVmAsInstalled]);
}

/** An esbuild plugin that leaves isolated-vm unbundled, because it has native code: it is required from its installed path. */
const isolatedVmAsInstalled: Plugin = {
  name: "isolated-vm",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^isolated-vm$/ }, ({ namespace, path }) =>
      namespace === "installed" ? { path, external: true } : { path, namespace: "installed" },
    );
    onLoad({ filter: /.*/, namespace: "installed" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};
