import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { WatchfireError } from "../errors.ts";
import { type ManifestDocument, readDocuments } from "./document.ts";
import { faultOfRule, faultsOfIssue } from "./fault.ts";
import type { FunctionManifest } from "./function.ts";
import { normalise } from "./normalise.ts";
import { type ExpressionChecker, ruleFaults } from "./rules.ts";
import { manifestSchema } from "./schema.ts";

/** One document of a file: a function, or what keeps it from being one. */
export interface ReadManifest {
  /** The name it claims, where that can be read. */
  readonly name: string | undefined;
  readonly manifest: FunctionManifest | undefined;
  /** Every fault of the document; empty where `manifest` is there. */
  readonly faults: readonly WatchfireError[];
  /** Where its name stands. */
  readonly document: ManifestDocument;
}

/**
 * Checks every document of a file, each by itself: all faults of one at once.
 * @param file as faults show it
 * @param folder absolute; what `handler` is relative to
 */
export function readManifests(
  text: string,
  file: string,
  folder: string,
  checkExpression?: ExpressionChecker,
): ReadManifest[] {
  return readDocuments(text, file).map((document) => {
    const name = nameOf(document.value);
    if (document.faults.length > 0) return { name, manifest: undefined, faults: document.faults, document };
    const checked = manifestSchema.safeParse(document.value);
    const issues = checked.error?.issues ?? [];
    const faults = issues.flatMap((issue) => faultsOfIssue(issue, document));
    // Whatever is no Function at all has nothing to gain from a hundred faults of a Function's fields.
    const stranger = faults.filter((fault) => fault.code === "WF_MANIFEST_NOT_A_FUNCTION");
    if (stranger.length > 0) return { name, manifest: undefined, faults: stranger, document };
    for (const fault of ruleFaults(document.value, checkExpression)) faults.push(faultOfRule(fault, document));
    const handler = handlerFault(document, folder);
    if (handler) faults.push(handler);
    faults.sort((a, b) => position(a) - position(b));
    const manifest = checked.data && faults.length === 0 ? normalise(checked.data, file, folder) : undefined;
    return { name, manifest, faults, document };
  });
}

function handlerFault(document: ManifestDocument, folder: string): WatchfireError | undefined {
  const handler = (document.value as { spec?: { handler?: unknown } } | null)?.spec?.handler;
  if (typeof handler !== "string" || handler.includes("\0")) return undefined;
  const path = resolve(folder, handler);
  if (existsSync(path) && statSync(path).isFile()) return undefined;
  return new WatchfireError("WF_MANIFEST_HANDLER_MISSING", {
    what: "no such file",
    place: document.place(["spec", "handler"]),
    path: "spec.handler",
    actual: handler,
  });
}

function nameOf(value: unknown): string | undefined {
  const name = (value as { metadata?: { name?: unknown } | null } | null | undefined)?.metadata?.name;
  return typeof name === "string" ? name : undefined;
}

const position = ({ detail: { place } }: WatchfireError): number => (place?.line ?? 0) * 1e6 + (place?.column ?? 0);
