import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { packAll } from "../../deploy/npm/pack.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The paths of all packages' tarballs. */
    tarballs: string[];
    /** The folder in which users' projects are created. */
    projects: string;
  }
}

/** Packs once for all test files, and removes at the end what they created. */
export default async function setup({ provide }: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-packages-"));
  const projects = join(folder, "projects");
  mkdirSync(projects);
  provide("projects", projects);
  provide("tarballs", await packAll(join(folder, "tarballs")));
  return () => rmSync(folder, { recursive: true, force: true });
}
