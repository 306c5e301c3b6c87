import type { Plugin } from "esbuild";

let script: Promise<string> | undefined;

/** The executor's program, whose file is `main`, as one script in JavaScript, built once per process. */
export function executorScript(main: string): Promise<string> {
  script ??= bundle(main).catch((error: unknown) => {
    script = undefined; // no failure is kept
    throw error;
  });
  return script;
}

async function bundle(main: string): Promise<string> {
  const { programScript } = await import("../bundle/program-script.ts");
  return programScript(main, [isolatedVmAsInstalled]);
}

/** Native code stays a package: it is required from where the program lies. */
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
