import { randomUUID } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { TalkingProcess } from "../tools/talking-process.ts";
import { bin, onFreePort } from "./run.ts";

/** A `watchfire` command of this checkout, in a separate process. */
export class Session extends TalkingProcess {
  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = process.cwd()) {
    super(process.execPath, [bin, ...onFreePort(args)], { env, cwd });
  }
}

/** Runs a command to its end. Returns its output and its exit status. */
export async function outcome(...args: readonly string[]): Promise<{ status: number | null; output: string }> {
  const session = new Session(args);
  const status = await session.end();
  return { status, output: session.output };
}

/**
 * Writes a file atomically, as editors do: a concurrent reader sees the old or the new content, never an empty file.
 */
export function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const beside = join(tmpdir(), `watchfire-${randomUUID()}`);
  writeFileSync(beside, text);
  renameSync(beside, file);
}

const nothing = "{ apiVersion: v1, kind: ConfigMap, fieldSelector: metadata.name=none }";

/** A function's manifest. Its default watch matches nothing; `spec` has further lines. */
export const manifest = (name: string, spec = "", watch = nothing): string => `
apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: ${name} }
spec:
  handler: ./handler.ts
  triggers: [{ watch: ${watch} }]
${spec}`;

/** Writes a function's folder below `functions`. */
export function define(functions: string, name: string, handler = "export default () => {};", text = manifest(name)) {
  write(join(functions, name, "handler.ts"), handler);
  write(join(functions, name, "function.yaml"), text);
}
