import type { z } from "zod";

/** zod's type names in the words of people who write YAML. */
const typeNames: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
};

/** Describes an issue with an existing value. */
export function wordsOf(issue: z.core.$ZodIssue, actual: unknown): string {
  switch (issue.code) {
    case "invalid_type": {
      const received = actual === null ? "nothing" : typeNames[Array.isArray(actual) ? "array" : typeof actual];
      return `expected ${typeNames[issue.expected] ?? issue.expected}, received ${received}`;
    }
    case "too_small":
    case "too_big":
      return sizeWords(issue);
    default: {
      const choices = choicesOf(issue);
      if (choices.length === 0) return issue.message;
      return choices.length === 1 ? `expected ${choices[0]}` : `expected one of ${choices.join(", ")}`;
    }
  }
}

/** Returns the values of which one is expected; empty if the issue is of another kind. */
export function choicesOf(issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code === "invalid_value") return issue.values.map(String);
  return issue.code === "invalid_union" && "options" in issue ? (issue.options ?? []).map(String) : [];
}

function sizeWords(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): string {
  const limit = issue.code === "too_small" ? `at least ${issue.minimum}` : `at most ${issue.maximum}`;
  if (!issue.message.startsWith("Too ")) return issue.message;
  if (issue.origin === "array") return `expected ${limit} items`;
  if (issue.origin !== "string") return `expected ${limit}`;
  return issue.code === "too_small" && issue.minimum === 1 ? "expected a text" : `expected ${limit} characters`;
}
