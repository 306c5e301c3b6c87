// Runs once after `npm ci`. Compiles the modules that `npm start` loads, so that the first start is as fast as the second.
import { keepCompiledCode } from "./compile-cache.js";

try {
  if (Number(process.versions.node.split(".")[0]) >= 24) {
    keepCompiledCode();
    const { setEngineFlags } = await import("../v8/engine.ts");
    setEngineFlags();
    for (const module of ["cli/dev.ts", "cluster/index.ts", "cluster/certificates.ts", "kube/kubeconfig.ts"]) {
      await import(`../${module}`);
    }
  }
} finally {
  process.exit(0); // a cold cache must not fail an installation; exiting writes the cache
}
