import type { z } from "zod";
import { type ErrorCode, type FaultDetail, WatchfireError } from "../errors.ts";
import type { ManifestDocument, Path } from "./document.ts";
import { jsonSchema } from "./json-schema.ts";
import type { RuleFault } from "./rules.ts";
import { suggest } from "./suggest.ts";

/** A path as people write it: `spec.triggers[0].watch.kind`. */
export function showPath(path: Path): string {
  let shown = "";
  for (const step of path) {
    const name = String(step);
    if (typeof step === "number") shown += `[${name}]`;
    else if (/^[\w$-]+$/.test(name)) shown += shown === "" ? name : `.${name}`;
    else shown += `[${JSON.stringify(name)}]`;
  }
  return shown;
}

/** What a rule between fields found, with its place. */
export function faultOfRule({ code, path, what, hint }: RuleFault, document: ManifestDocument): WatchfireError {
  return fault(code, document, path, { what, ...(hint === undefined ? {} : { hint }) });
}

/** The faults that one zod issue stands for: several where an object has several unknown fields. */
export function faultsOfIssue(issue: z.core.$ZodIssue, document: ManifestDocument): WatchfireError[] {
  const path = issue.path;
  const actual = valueAt(document.value, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownField([...path, key], document));
    case "invalid_type":
      return [actual === undefined ? missing(path, document) : wrongType(issue.expected, path, actual, document)];
    case "invalid_value": {
      if (actual === undefined) return [missing(path, document)];
      const values = issue.values.map(String);
      const meant = typeof actual === "string" ? suggest(actual, values) : undefined;
      const what = values.length === 1 ? `expected ${values[0]}` : `expected one of ${values.join(", ")}`;
      const hint = meant === undefined ? {} : { hint: `did you mean ${meant}?` };
      return [fault(valueCode(path), document, path, { what, ...hint })];
    }
    case "too_small":
    case "too_big":
      return [fault("WF_MANIFEST_INVALID_VALUE", document, path, { what: sizeFault(issue) })];
    default:
      return [fault("WF_MANIFEST_INVALID_VALUE", document, path, { what: issue.message, ...hintFor(path, actual) })];
  }
}

/** A wrong apiVersion or kind means that the document is another thing altogether. */
const valueCode = (path: Path): ErrorCode =>
  path.length === 1 && (path[0] === "apiVersion" || path[0] === "kind")
    ? "WF_MANIFEST_NOT_A_FUNCTION"
    : "WF_MANIFEST_INVALID_VALUE";

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

function unknownField(path: Path, document: ManifestDocument): WatchfireError {
  const known = Object.keys(propertySchema(path.slice(0, -1))?.properties ?? {});
  const meant = suggest(String(path.at(-1)), known);
  return new WatchfireError("WF_MANIFEST_UNKNOWN_FIELD", {
    what: `unknown field ${JSON.stringify(path.at(-1))}`,
    place: document.placeOfKey(path),
    path: showPath(path),
    hint: meant === undefined ? `known here: ${known.join(", ")}` : `did you mean ${meant}?`,
  });
}

function wrongType(expected: string, path: Path, actual: unknown, document: ManifestDocument): WatchfireError {
  const type = expected === "int" ? "whole number" : expected === "record" ? "map" : expected;
  const scalar = typeof actual === "number" || typeof actual === "boolean";
  const quoted = path.includes("env") ? "put the value in quotes" : `put it in quotes: "${actual}"`;
  const hint = expected === "string" && scalar ? { hint: quoted } : {};
  const received = Array.isArray(actual) ? "a list" : actual === null ? "nothing" : `a ${typeof actual}`;
  return fault("WF_MANIFEST_WRONG_TYPE", document, path, { what: `expected ${type}, received ${received}`, ...hint });
}

function sizeFault(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const limit = issue.code === "too_small" ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  if (!issue.message.startsWith("Too ")) return issue.message;
  if (issue.origin === "array") return `expected ${limit} items`;
  return issue.origin === "string" ? `expected ${limit} characters` : `expected ${limit}`;
}

/** Hints for the mistakes that people bring along from other formats. */
function hintFor(path: Path, actual: unknown): { hint?: string } {
  if (typeof actual !== "string") return {};
  const names = path.filter((step) => typeof step === "string");
  const last = names.at(-1);
  if (names.includes("permissions")) {
    if (last === "resources")
      return { hint: `use the plural that \`kubectl api-resources\` shows, such as ${plural(actual)}` };
    if (last === "apiGroups" && actual.includes("/")) return { hint: `write the group alone: ${actual.split("/")[0]}` };
    if (last === "apiGroups" && /^v\d/.test(actual)) return { hint: 'the core group is written ""' };
  }
  if (last === "host")
    return { hint: `write the name alone, such as ${hostIn(actual)}, and its ports under \`ports\`` };
  if (/^\d+$/.test(actual) && /delay|timeout|cpu/i.test(last ?? ""))
    return { hint: `add a unit: ${actual}s or ${actual}ms` };
  return {};
}

const plural = (text: string): string => `${text.toLowerCase().replace(/s$/, "")}s`;
const hostIn = (text: string): string =>
  text
    .replace(/^\w+:\/\//, "")
    .replace(/^\*\./, "")
    .replace(/[:/].*$/s, "") || "example.com";

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

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, "");
