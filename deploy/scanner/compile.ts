import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const folder = join(import.meta.dirname, "../../runtime/informer/scan/wasm");

/** Path of the file that contains the module. */
export const compiledFile = join(folder, "scanner.compiled.ts");

/**
 * Initial memory in pages of 64 KiB: the scratch space, 2 MiB of text, and as many cuts as that may have. A longer text makes it
 * grow.
 */
const pages = 75;

/** Returns the content of `compiledFile`, compiled from the sources in its folder. */
export function compiledModule(): string {
  const to = mkdtempSync(join(tmpdir(), "watchfire-scanner-"));
  const outFile = join(to, "scanner.wasm");
  // Path of the compiler. It is run and not imported, because its types would affect those of all our files.
  const compiler = join(dirname(createRequire(import.meta.url).resolve("assemblyscript/package.json")), "bin/asc.js");
  const options = ["-O3", "--noAssert", "--runtime", "stub", "--enable", "simd", "--initialMemory", String(pages)];
  try {
    execFileSync(process.execPath, [compiler, "scanner.wasm.ts", ...options, "--outFile", outFile], { cwd: folder });
    const text = readFileSync(outFile, "base64");
    const notice = "made by npm run scanner; change the sources in this folder";
    return `// biome-ignore-all format: ${notice}\nexport const compiled = "${text}";\n`;
  } finally {
    rmSync(to, { recursive: true, force: true });
  }
}
