import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { packAll } from "../../deploy/npm/pack.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The paths of all packages' tarballs. */
    tarballs: string[];
  }
}

/** Packs once for all files. */
export default async function setup({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-tarballs-"));
  provide("tarballs", await packAll(folder));
  return () => rmSync(folder, { recursive: true, force: true });
}
