import { RE2JS } from "re2js";

/** Cache of compiled patterns. It is bounded, because clients choose the patterns. */
const compiled = new Map<string, RE2JS | Error>();
const maxCompiled = 1000;

/** Compiles a pattern in RE2's syntax, which is Go's. Returns an error, in Go's words, if the pattern is invalid. */
export function compilePattern(source: string): RE2JS | Error {
  const known = compiled.get(source);
  if (known) return known;
  if (compiled.size >= maxCompiled) compiled.clear();
  const result = compile(source);
  compiled.set(source, result);
  return result;
}

function compile(source: string): RE2JS | Error {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
