import { statSync } from "node:fs";
import { resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { systemReason } from "../base/wording.ts";
import { type ManifestDocument, readDocuments } from "../document/document.ts";
import { dnsLabel } from "../kube/names.ts";
import { faultOfRule, faultsOfIssues } from "./fault.ts";
import type { FunctionManifest } from "./function.ts";
import { normalise } from "./normalise.ts";
import type { ExpressionChecker } from "./rule-fault.ts";
import { ruleFaults } from "./rules.ts";
import { apiVersion, manifestSchema } from "./schema.ts";

/** One document of a file: a function, or the faults that keep it from being one. */
export interface ReadManifest {
  /** The name it claims, if it is present and valid. */
  readonly name: string | undefined;
  readonly manifest: FunctionManifest | undefined;
  /** Every fault of the document; empty if `manifest` is set. */
  readonly faults: readonly WatchfireError[];
  /** The document, which locates its fields. */
  readonly document: ManifestDocument;
}

/**
 * Checks every document of a file separately, and reports all faults of each.
 * @param file its name in faults
 * @param folder absolute path that `handler` is relative to. `undefined` if the code is already available: no file is looked for
 */
export function readManifests(
  text: string,
  file: string,
  folder: string | undefined,
  checkExpression?: ExpressionChecker,
): ReadManifest[] {
  return readDocuments(text, file).map((document) => {
    const name = nameOf(document.value);
    if (document.faults.length > 0) return { name, manifest: undefined, faults: document.faults, document };
    const stranger = strangerFault(document);
    if (stranger) return { name, manifest: undefined, faults: [stranger], document };
    const checked = manifestSchema.safeParse(document.value);
    const found = faultsOfIssues(checked.error?.issues ?? [], document);
    for (const fault of ruleFaults(document.value, checkExpression)) found.push(faultOfRule(fault, document));
    const handler = folder === undefined ? undefined : handlerFault(document, folder);
    if (handler) found.push(handler);
    const faults = onePerPlace(found).sort((a, b) => position(a) - position(b));
    const manifest = checked.data && faults.length === 0 ? normalise(checked.data, file, folder ?? "/") : undefined;
    return { name, manifest, faults, document };
  });
}

/** Returns a single fault for a document that is not a Function, instead of a hundred faults about a Function's fields. */
function strangerFault(document: ManifestDocument): WatchfireError | undefined {
  const fault = (path: string, what: string, actual?: unknown, hint?: string): WatchfireError =>
    new WatchfireError("WF_MANIFEST_NOT_A_FUNCTION", {
      what,
      place: document.place(path === "" ? [] : [path]),
      path,
      actual,
      ...(hint !== undefined && { hint }),
    });
  const { value } = document;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return fault("", "the document is not a map", Array.isArray(value) ? undefined : value);
  }
  const expected = { apiVersion, kind: "Function" };
  const given = value as Partial<Record<keyof typeof expected, unknown>>;
  if (given.apiVersion === undefined && given.kind === undefined) return fault("", "it has no apiVersion and no kind");
  for (const field of ["apiVersion", "kind"] as const) {
    const actual = given[field];
    if (actual === undefined || actual === expected[field]) continue;
    const near = typeof actual === "string" && suggest(actual, [expected[field]]);
    return fault(field, `expected ${expected[field]}`, actual, near ? `did you mean ${near}?` : undefined);
  }
  return undefined;
}

/** Keeps the first of several faults at one path: the others are consequences. */
function onePerPlace(faults: readonly WatchfireError[]): WatchfireError[] {
  const first = new Map<string, WatchfireError>();
  for (const fault of faults) {
    const path = fault.detail.path ?? "";
    if (!first.has(path)) first.set(path, fault);
  }
  return [...first.values()];
}

function handlerFault(document: ManifestDocument, folder: string): WatchfireError | undefined {
  const handler = (document.value as { spec?: { handler?: unknown } } | null)?.spec?.handler;
  if (typeof handler !== "string" || handler.includes("\0")) return undefined;
  let what = "no such file";
  try {
    if (statSync(resolve(folder, handler), { throwIfNoEntry: false })?.isFile()) return undefined;
  } catch (cause) {
    what = systemReason(cause);
  }
  return new WatchfireError("WF_MANIFEST_HANDLER_MISSING", {
    what,
    place: document.place(["spec", "handler"]),
    path: "spec.handler",
    actual: handler,
  });
}

function nameOf(value: unknown): string | undefined {
  const name = (value as { metadata?: { name?: unknown } | null } | null | undefined)?.metadata?.name;
  return typeof name === "string" && dnsLabel.test(name) ? name : undefined;
}

const position = ({ detail: { place } }: WatchfireError): number => (place?.line ?? 0) * 1e6 + (place?.column ?? 0);
