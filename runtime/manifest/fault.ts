import type { z } from "zod";
import { type ErrorCode, type FaultDetail, WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { lowerFirst } from "../base/wording.ts";
import type { ManifestDocument } from "../document/document.ts";
import { type Path, showPath, valueAt } from "../document/path.ts";
import { unitHint, valueHint } from "./hint.ts";
import { choicesOf, wordsOf } from "./issue-words.ts";
import { jsonSchema, schemaAt } from "./json-schema.ts";
import type { RuleFault } from "./rule-fault.ts";

/** Converts the fault of a rule between fields, adding its place. */
export function faultOfRule({ code, path, what, hint }: RuleFault, document: ManifestDocument): WatchfireError {
  return fault(code, document, path, { what, ...(hint === undefined ? {} : { hint }) });
}

/** Converts zod's issues to faults, one for each cause. */
export function faultsOfIssues(issues: readonly z.core.$ZodIssue[], document: ManifestDocument): WatchfireError[] {
  const meant = new Set<string>();
  const unknown = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => unknownField([...issue.path, key], document, meant))
      : [],
  );
  const others = issues
    .filter(({ code, path }) => code !== "unrecognized_keys" && !meant.has(showPath(path)))
    .map((issue) => faultOfIssue(issue, document));
  return [...others, ...unknown];
}

function faultOfIssue(issue: z.core.$ZodIssue, document: ManifestDocument): WatchfireError {
  const path = issue.path;
  const actual = valueAt(document.value, path);
  const choices = choicesOf(issue);
  if (actual === undefined && (issue.code === "invalid_type" || choices.length > 0)) return missing(path, document);
  const what = wordsOf(issue, actual);
  if (issue.code === "invalid_type") {
    const hint = typeHint(issue.expected, path, actual);
    return fault("WF_MANIFEST_WRONG_TYPE", document, path, { what, ...(hint !== undefined && { hint }) });
  }
  const near = typeof actual === "string" ? suggest(actual, choices) : undefined;
  const hint = valueHint(path, actual) ?? (near === undefined ? undefined : `did you mean ${near}?`);
  return fault("WF_MANIFEST_INVALID_VALUE", document, path, { what, ...(hint !== undefined && { hint }) });
}

function fault(code: ErrorCode, document: ManifestDocument, path: Path, detail: FaultDetail): WatchfireError {
  const actual = valueAt(document.value, path);
  // A value of `env` may be a secret, though it should not be, so it is not shown.
  const shown = actual === undefined || typeof actual === "object" || path.includes("env") ? {} : { actual };
  return new WatchfireError(code, { place: document.place(path), path: showPath(path), ...shown, ...detail });
}

function missing(path: Path, document: ManifestDocument): WatchfireError {
  const about = propertySchema(path)?.description;
  return new WatchfireError("WF_MANIFEST_MISSING_FIELD", {
    what: "the field is missing",
    place: document.place(path),
    path: showPath(path),
    ...(typeof about === "string" ? { hint: `add it: ${lowerFirst(about)}` } : {}),
  });
}

/** @param meant collects the path that was probably meant, so that it is not reported as missing too */
function unknownField(path: Path, document: ManifestDocument, meant: Set<string>): WatchfireError {
  const parent = path.slice(0, -1);
  const known = Object.keys(propertySchema(parent)?.properties ?? {});
  const near = suggest(String(path.at(-1)), known);
  if (near !== undefined) meant.add(showPath([...parent, near]));
  return new WatchfireError("WF_MANIFEST_UNKNOWN_FIELD", {
    what: `unknown field ${JSON.stringify(path.at(-1))}`,
    place: document.placeOfKey(path),
    path: showPath(path),
    hint: near === undefined ? `known here: ${known.join(", ")}` : `did you mean ${near}?`,
  });
}

function typeHint(expected: string, path: Path, actual: unknown): string | undefined {
  if (actual === null) return "give it a value, or leave the field out";
  if (expected === "object") return shapeHint("a map of", propertySchema(path));
  if (typeof actual === "object") return shapeHint("a list of maps of", propertySchema(path)?.items);
  const shown = path.includes("env") ? "…" : String(actual);
  if (expected === "array") return `write a list: [${typeof actual === "string" ? JSON.stringify(shown) : shown}]`;
  if (expected === "string") return unitHint(path, shown) ?? `put it in quotes: "${shown}"`;
  const number = /^(?:int|number)$/.test(expected) && /^\d+$/.test(String(actual));
  return number ? `write it without quotes: ${shown}` : undefined;
}

/** Names the fields that a map accepts; `undefined` if its keys are free. */
function shapeHint(shape: string, schema: ReturnType<typeof propertySchema>): string | undefined {
  const fields = Object.keys(schema?.properties ?? {});
  return fields.length === 0 ? undefined : `write ${shape} ${fields.join(", ")}`;
}

/** Returns the JSON Schema of the value at a path. */
const propertySchema = (path: Path) => schemaAt(jsonSchema(), path);
