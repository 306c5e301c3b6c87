// Runs once after `npm ci`: compiles what `npm start` loads, so that the first start is as quick as the second.
import { keepCompiledCode } from "./compile-cache.js";

try {
  if (Number(process.versions.node.split(".")[0]) >= 24) {
    keepCompiledCode();
    for (const module of ["cli/dev.ts", "dev/cluster/cluster.ts", "dev/cluster/certificates.ts"]) {
      await import(`../${module}`);
    }
  }
} finally {
  process.exit(0); // a cold start is no reason to fail an installation; leaving writes the cache
}
