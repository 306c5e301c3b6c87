import type { z } from "zod";

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

/** What an issue says of the value at its path, which is there. */
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

/** The values of which one is expected; none where the issue is of another sort. */
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
