// Runs once after `npm ci`. It compiles what `npm start` loads, so that the first start is as quick as the second. It
// puts the used part of client-node into one file.
import { rename } from "node:fs/promises";
import { keepCompiledCode } from "./compile-cache.js";

try {
  if (Number(process.versions.node.split(".")[0]) >= 24) {
    keepCompiledCode();
    const { setEngineFlags } = await import("../engine.ts");
    setEngineFlags();
    for (const module of ["cli/dev.ts", "cluster/index.ts", "cluster/certificates.ts"]) {
      await import(`../${module}`);
    }
    await bundleClient();
  }
} finally {
  process.exit(0); // a cold start is no reason to fail an installation; leaving writes the cache
}

async function bundleClient() {
  const { build } = await import("esbuild");
  const { clientBundle, importClient } = await import("../kube/client-node.ts");
  const { kubeconfigAlone } = await import("../kube/kubeconfig-alone.ts");
  const file = clientBundle();
  const half = `${file}.${process.pid}`;
  await build({
    stdin: { contents: 'export { KubeConfig } from "@kubernetes/client-node";', resolveDir: import.meta.dirname },
    bundle: true,
    platform: "node",
    format: "esm",
    outfile: half,
    // The runtime's transport loads it in any case.
    external: ["undici"],
    // Some of what it depends on is CommonJS.
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
    },
    plugins: [kubeconfigAlone],
    logLevel: "silent",
  });
  await rename(half, file);
  await importClient();
}
