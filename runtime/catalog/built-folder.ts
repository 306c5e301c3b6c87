import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { scriptLimit } from "../bundle/limits.ts";
import { bundleOf } from "../bundle/script-bundle.ts";
import { dnsLabel } from "../kube/names.ts";
import { isBuilt, lockName, lockSignatureName } from "../manifest/built.ts";
import { type FunctionParts, hashOf, mapLimit } from "./function-parts.ts";
import type { SigningKey, TrustedKeys } from "./signature.ts";

const files = { manifest: "function.yaml", script: "handler.js", sourceMap: "handler.js.map" } as const;
const fileNames: ReadonlySet<string> = new Set(Object.values(files));

/** Limits of each part, in bytes: a manifest is a page of text. */
const limits = { manifest: 1024 * 1024, script: scriptLimit, sourceMap: mapLimit } as const;

/** Limit of the lock, in bytes: the same number of functions as in a deployment's index. */
const lockLimit = 1024 * 1024;
const signatureLimit = 4096;

/**
 * Statement that a lock's signature signs. It is for every runtime that trusts the key, and has no time, so that the same sources
 * give the same bytes, and an image that is rolled back runs.
 */
const statementOf = (lock: string) => ({ purpose: "built-functions", audience: "", serial: 0, content: lock }) as const;

const lockSchema = z.strictObject({
  version: z.literal(1),
  functions: z
    .array(z.strictObject({ name: z.string().regex(dnsLabel), sha256: z.string().regex(/^[0-9a-f]{64}$/) }))
    .refine((functions) => new Set(functions.map(({ name }) => name)).size === functions.length, {
      error: "two functions have the same name",
    }),
});

/** One built function: its parts, and the values derived from them. */
interface BuiltFunction {
  readonly name: string;
  /** Hash of the three parts; the same as for the deployed function. */
  readonly sha256: string;
  /** The manifest's file name, and its text. */
  readonly file: string;
  readonly manifest: string;
  readonly bundle: Bundle;
}

/**
 * Writes functions into a folder and removes those that an earlier build wrote there. The same parts and key give the same bytes.
 * @throws WatchfireError WF_BUILD_FOLDER if the folder holds anything else, or cannot be written
 */
export function writeBuilt(
  folder: string,
  functions: readonly (FunctionParts & { readonly name: string })[],
  key?: SigningKey,
): void {
  const out = resolve(folder);
  const fault = (what: string, cause?: unknown) =>
    new WatchfireError("WF_BUILD_FOLDER", { what, place: { file: folder }, cause });
  if (existsSync(out) && !isBuilt(out) && readdirSync(out).length > 0) {
    throw fault("it has files that no build wrote");
  }
  const half = `${out}.${process.pid}.half`;
  try {
    mkdirSync(half, { recursive: true });
    for (const { name, ...parts } of functions) {
      mkdirSync(join(half, name));
      for (const part of ["manifest", "script", "sourceMap"] as const) {
        writeFileSync(join(half, name, files[part]), parts[part]);
      }
    }
    const lock = lockText(functions);
    writeFileSync(join(half, lockName), lock);
    if (key) writeFileSync(join(half, lockSignatureName), key.sign(statementOf(lock)));
    // The old content is removed only after everything has been written.
    rmSync(out, { recursive: true, force: true });
    mkdirSync(dirname(out), { recursive: true });
    renameSync(half, out);
  } catch (cause) {
    rmSync(half, { recursive: true, force: true });
    throw fault(systemReason(cause), cause);
  }
}

/** Formats one line per function, so that a person can read what changed. */
function lockText(functions: readonly (FunctionParts & { readonly name: string })[]): string {
  const rows = functions
    .map(({ name, ...parts }) => ({ name, sha256: hashOf(parts) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => `  ${JSON.stringify(entry)}`);
  return `{"version":1,"functions":[\n${rows.join(",\n")}\n]}\n`;
}

/**
 * Reads the functions that a build wrote, by name, and checks them against the lock: any difference, omission or addition is an
 * error. With `trust`, one of these keys must have signed the lock.
 * @throws WatchfireError WF_BUILD_UNTRUSTED; WF_BUILD_DAMAGED with all differences
 */
export function readBuilt(folder: string, trust?: TrustedKeys): ReadonlyMap<string, BuiltFunction> {
  const lock = readLock(folder, trust);
  const faults: WatchfireError[] = [];
  const built = new Map<string, BuiltFunction>();
  for (const { name, sha256 } of lock) {
    try {
      const parts = readParts(join(folder, name));
      if (hashOf(parts) !== sha256) throw damaged(join(folder, name), "is not what was built");
      const { manifest } = parts;
      built.set(name, {
        name,
        sha256,
        file: join(folder, name, files.manifest),
        manifest,
        bundle: bundleOf(parts.script, parts.sourceMap),
      });
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      faults.push(error);
    }
  }
  faults.push(...added(folder, new Set([lockName, lockSignatureName, ...lock.map(({ name }) => name)])));
  for (const name of built.keys()) faults.push(...added(join(folder, name), fileNames));
  const [first, ...more] = faults;
  if (first) throw new WatchfireError(first.code, { ...first.detail, more });
  return built;
}

/** Finds the entries of a folder that a build does not write. */
function added(folder: string, known: ReadonlySet<string>): WatchfireError[] {
  return (
    readdirSync(folder)
      // The links that a mounted volume contains begin with a dot.
      .filter((name) => !known.has(name) && !name.startsWith("."))
      .map((name) => damaged(join(folder, name), "was not built"))
  );
}

function readLock(
  folder: string,
  trust: TrustedKeys | undefined,
): readonly { readonly name: string; readonly sha256: string }[] {
  const file = join(folder, lockName);
  const text = readPart(file, lockLimit);
  if (trust) assertSigned(folder, text, trust);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(file, "is not JSON", cause);
  }
  const { data, error } = lockSchema.safeParse(value);
  if (!data) throw damaged(file, z.prettifyError(error).replaceAll("\n", " "));
  return data.functions;
}

function assertSigned(folder: string, lock: string, trust: TrustedKeys): void {
  const file = join(folder, lockSignatureName);
  const signature = existsSync(file) ? readPart(file, signatureLimit) : undefined;
  const found = trust.verify(signature, statementOf(lock));
  if (typeof found !== "number") throw new WatchfireError("WF_BUILD_UNTRUSTED", { what: found.why, place: { file } });
}

function readParts(folder: string): FunctionParts {
  const part = (name: keyof typeof files) => readPart(join(folder, files[name]), limits[name]);
  return { manifest: part("manifest"), script: part("script"), sourceMap: part("sourceMap") };
}

function readPart(file: string, limit: number): string {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) throw damaged(file, "is not a regular file");
    if (stats.size > limit) throw damaged(file, `has ${stats.size} bytes, more than ${limit}`);
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof WatchfireError) throw cause;
    throw damaged(file, `cannot be read: ${systemReason(cause)}`, cause);
  }
}

const damaged = (file: string, what: string, cause?: unknown): WatchfireError =>
  new WatchfireError("WF_BUILD_DAMAGED", { what, place: { file }, cause });
