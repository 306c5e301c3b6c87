// npm run release:pin -- DIGEST: writes deploy/.packages/functions.Dockerfile, which is based on the release's image by its
// digest.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { output, runtime } from "../npm/packages.ts";

const file = "functions.Dockerfile";

/** Returns the Dockerfile with the runtime's image of this version and digest as its default. Throws for a malformed digest. */
export function pinned(text: string, version: string, digest: string): string {
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`no digest: ${digest}`);
  const image = `ghcr.io/watchfire/watchfire:${version}@${digest}`;
  return text.replace(/^ARG WATCHFIRE_IMAGE$/m, `ARG WATCHFIRE_IMAGE=${image}`);
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(runtime.folder, "package.json"), "utf8")) as { version: string };
  const text = readFileSync(join(import.meta.dirname, "..", file), "utf8");
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, file), pinned(text, version, process.argv[2] ?? ""));
}
