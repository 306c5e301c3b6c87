import { createRequire, enableCompileCache } from "node:module";
import { dirname, join } from "node:path";

/**
 * Enables Node's compile cache in the installation's own `node_modules/.cache`, which only its owner can write to. Node's default
 * is a folder shared by all users of the machine. Without write access nothing is cached, and nothing fails.
 */
export function keepCompiledCode() {
  const installed = dirname(dirname(createRequire(import.meta.url).resolve("esbuild/package.json")));
  enableCompileCache(join(installed, ".cache", "watchfire", "compile"));
}
