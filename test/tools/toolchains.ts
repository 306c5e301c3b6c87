// Programs in other languages that the benchmarks compare with. They are skipped without Go or Python.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Builds the Go program of a folder into this file; `undefined` if Go is missing or fails. */
export function goProgram(folder: string, file: string): string | undefined {
  return succeeds("go", ["build", "-o", file, "."], folder) ? file : undefined;
}

/**
 * Creates a Python environment with these requirements. Returns its `bin` folder; `undefined` if Python or pip is missing.
 */
export function pythonPrograms(requirements: string, folder: string): string | undefined {
  const bin = join(folder, "bin");
  const isMade =
    succeeds("python3", ["-m", "venv", folder]) &&
    succeeds(join(bin, "pip"), ["install", "--quiet", "-r", requirements]);
  return isMade ? bin : undefined;
}

function succeeds(program: string, args: readonly string[], cwd?: string): boolean {
  try {
    execFileSync(program, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
    return true;
  } catch {
    return false;
  }
}
