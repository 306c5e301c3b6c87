import type { z } from "zod";
import { suggest } from "../base/suggest.ts";
import { cut, lowerFirst, shorten } from "../base/wording.ts";

/** Names of zod's types, in JavaScript's terms. */
const typeNames: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "a boolean",
  array: "an array",
  tuple: "an array",
  object: "an object",
  record: "an object",
};

/**
 * Describes an invalid argument in one line: the operation's field, the expected value and the actual one. Values of `fetch` are
 * not shown, because its headers, URL and body may be credentials.
 */
export function argumentFault(operation: string, issue: z.core.$ZodIssue, value: unknown): string {
  const at = issue.path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`)).join("");
  const field = at === "" ? "the argument" : at.replace(/^\./, "");
  const actual = issue.path.reduce<unknown>((within, step) => (within as Record<PropertyKey, unknown>)?.[step], value);
  const got = operation === "fetch" ? "" : given(actual);
  return `${operation}: ${describe(issue, field, actual, got)}`;
}

function describe(issue: z.core.$ZodIssue, field: string, actual: unknown, got: string): string {
  switch (issue.code) {
    case "invalid_type": {
      const expected = typeNames[issue.expected] ?? issue.expected;
      return actual === undefined ? `${field} is missing; expected ${expected}` : `${field} is not ${expected}${got}`;
    }
    case "unrecognized_keys": {
      const [key = ""] = issue.keys;
      const near = suggest(key, refFields);
      return `${field} has no field ${cut(key, mostOfKey)}${near === undefined ? "" : `; did you mean ${near}?`}`;
    }
    case "invalid_value":
      return `${field} is not one of ${issue.values.map(String).join(", ")}${got}`;
    case "invalid_union":
      return `${field} is not one of ${optionsOf(issue)}${got}`;
    case "too_small":
      return `${field} is less than ${issue.minimum}${got}`;
    case "too_big":
      return `${field} is ${issue.origin === "string" || issue.origin === "array" ? "longer" : "more"} than ${issue.maximum}${got}`;
    default:
      // The schema's message continues a sentence that begins with the field's name: `is not a kind such as ConfigMap`.
      return `${field} ${lowerFirst(issue.message)}${got}`;
  }
}

/** Maximum length of an unknown field's name. */
const mostOfKey = 100;

const refFields = ["apiVersion", "kind", "name", "namespace", "labelSelector", "fieldSelector", "limit", "continue"];

const optionsOf = (issue: z.core.$ZodIssueInvalidUnion): string =>
  "options" in issue && Array.isArray(issue.options) ? issue.options.map(String).join(", ") : "those allowed";

/** Shows a string, number or boolean, shortened; only the type of other values. */
function given(actual: unknown): string {
  if (actual === undefined) return "";
  if (actual === null) return ", got null";
  if (typeof actual !== "object") return `, got ${shorten(actual)}`;
  return `, got ${Array.isArray(actual) ? "an array" : "an object"}`;
}
