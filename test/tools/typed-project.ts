import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { folderOf } from "./folder.ts";

const root = join(import.meta.dirname, "../..");

const settings = {
  compilerOptions: {
    target: "esnext",
    module: "nodenext",
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
    types: [],
  },
};

/**
 * Creates a project with the SDK, and with TypeScript unless `typescript` is false. It is removed after the test. Returns its
 * path.
 */
export function typedProject(files: Readonly<Record<string, string>>, { typescript = true } = {}): string {
  const folder = folderOf({
    "tsconfig.json": JSON.stringify(settings),
    "package.json": `{ "type": "module" }`,
    ...files,
  });
  mkdirSync(join(folder, "node_modules/@watchfire"), { recursive: true });
  symlinkSync(join(root, "sdk"), join(folder, "node_modules/@watchfire/sdk"));
  if (typescript) symlinkSync(join(root, "node_modules/typescript"), join(folder, "node_modules/typescript"));
  return folder;
}

/** The compiler's errors for a project, one line each. */
export function compilerFaults(folder: string): string[] {
  try {
    execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder, "--pretty", "false"], {
      cwd: folder,
      encoding: "utf8",
      stdio: "pipe",
    });
    return [];
  } catch (error) {
    return (error as { stdout: string }).stdout.trim().split("\n");
  }
}
