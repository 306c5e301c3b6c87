import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";

let script: Promise<string> | undefined;

/**
 * The executor's program, whose file is `main`, as one script in JavaScript, built once per process. To strip the types of its files anew would
 * take each executor 85 ms of CPU, half of its start: Node's compile cache is closed to a process without write access.
 */
export function executorScript(main: string): Promise<string> {
  script ??= bundle(main).catch((error: unknown) => {
    script = undefined; // no failure is kept
    throw error;
  });
  return script;
}

async function bundle(main: string): Promise<string> {
  const { buildInService } = await import("../bundle/build-service.ts");
  const result = await buildInService({
    entryPoints: [main],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node24",
    minifyWhitespace: true,
    legalComments: "none",
    logLevel: "silent",
    plugins: [isolatedVmAsInstalled],
    // A script has no place of its own to look for packages from.
    define: { "import.meta.url": "programUrl" },
    banner: {
      js: `import { createRequire as requireFrom } from "node:module";
const programUrl = ${JSON.stringify(pathToFileURL(main).href)}, require = requireFrom(programUrl);`,
    },
  });
  return result.outputFiles[0]?.text ?? "";
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
