import { createRequire, enableCompileCache } from "node:module";
import { dirname, join } from "node:path";

/**
 * Keeps compiled code in the installation's own `node_modules/.cache`, which only its owner writes to. Node's default
 * is a folder that every user of the machine shares. Without write access nothing is kept, and nothing fails.
 */
export function keepCompiledCode() {
  const installed = dirname(dirname(createRequire(import.meta.url).resolve("esbuild/package.json")));
  enableCompileCache(join(installed, ".cache", "watchfire", "compile"));
}
