import type { z } from "zod";
import type { ManifestDocument } from "../document/document.ts";
import { type Path, showPath } from "../document/path.ts";
import { type ErrorCode, type FaultDetail, WatchfireError } from "../errors.ts";
import { suggest } from "../suggest.ts";
import { lowerFirst } from "../wording.ts";
import { unitHint, valueHint } from "./hint.ts";
import { jsonSchema } from "./json-schema.ts";
import type { RuleFault } from "./rule-fault.ts";

/** What a rule between fields found, with its place. */
export function faultOfRule({ code, path, what, hint }: RuleFault, document: ManifestDocument): WatchfireError {
  return fault(code, document, path, { what, ...(hint === undefined ? {} : { hint }) });
}

/** The faults that zod's issues stand for: one for each cause. */
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
  switch (issue.code) {
    case "invalid_type":
      return actual === undefined ? missing(path, document) : wrongType(issue.expected, path, actual, document);
    case "invalid_value": {
      if (actual === undefined) return missing(path, document);
      const values = issue.values.map(String);
      const what = values.length === 1 ? `expected ${values[0]}` : `expected one of ${values.join(", ")}`;
      const near = typeof actual === "string" ? suggest(actual, values) : undefined;
      const hint = valueHint(path, actual) ?? (near === undefined ? undefined : `did you mean ${near}?`);
      return fault("WF_MANIFEST_INVALID_VALUE", document, path, { what, ...(hint !== undefined && { hint }) });
    }
    default: {
      const what = issue.code === "too_small" || issue.code === "too_big" ? sizeFault(issue) : issue.message;
      const hint = valueHint(path, actual);
      return fault("WF_MANIFEST_INVALID_VALUE", document, path, { what, ...(hint !== undefined && { hint }) });
    }
  }
}

function fault(code: ErrorCode, document: ManifestDocument, path: Path, detail: FaultDetail): WatchfireError {
  const actual = valueAt(document.value, path);
  // A value of `env` may be somebody's secret, though it should not be.
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

/** @param meant takes the path that was probably meant: it is not missing as well */
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

/** zod's names of types, as people who write YAML call them. */
const typeNames: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
};

function wrongType(expected: string, path: Path, actual: unknown, document: ManifestDocument): WatchfireError {
  const received = actual === null ? "nothing" : typeNames[Array.isArray(actual) ? "array" : typeof actual];
  const what = `expected ${typeNames[expected] ?? expected}, received ${received}`;
  const hint = typeHint(expected, path, actual);
  return fault("WF_MANIFEST_WRONG_TYPE", document, path, { what, ...(hint !== undefined && { hint }) });
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

/** Names the fields that a map takes; nothing where its keys are the author's own. */
function shapeHint(shape: string, schema: ReturnType<typeof propertySchema>): string | undefined {
  const fields = Object.keys(schema?.properties ?? {});
  return fields.length === 0 ? undefined : `write ${shape} ${fields.join(", ")}`;
}

function sizeFault(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const limit = issue.code === "too_small" ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  if (!issue.message.startsWith("Too ")) return issue.message;
  if (issue.origin === "array") return `expected ${limit} items`;
  if (issue.origin !== "string") return `expected ${limit}`;
  return issue.code === "too_small" && issue.minimum === 1 ? "expected a text" : `expected ${limit} characters`;
}

/** The JSON Schema of what stands at a path. */
function propertySchema(path: Path) {
  let schema = jsonSchema();
  for (const step of path) {
    const next = typeof step === "number" ? schema.items : schema.properties?.[String(step)];
    if (!next) return undefined;
    schema = next;
  }
  return schema;
}

function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const step of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, step)) return undefined;
    current = (current as Record<PropertyKey, unknown>)[step];
  }
  return current;
}
