import { RE2JS } from "re2js";

/** The patterns that were compiled; bounded, since clients choose them. */
const compiled = new Map<string, RE2JS | Error>();
const maxCompiled = 1000;

/** Compiles a pattern of RE2, the syntax of Go. Returns an error, in Go's words, for one that is none. */
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
