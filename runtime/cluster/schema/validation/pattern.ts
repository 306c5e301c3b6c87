/** The patterns that were compiled; bounded, since clients choose them. */
const compiled = new Map<string, RegExp | Error>();
const maxCompiled = 1000;
const classes: Readonly<Record<string, string>> = {
  alpha: "a-zA-Z",
  digit: "0-9",
  alnum: "a-zA-Z0-9",
  upper: "A-Z",
  lower: "a-z",
  space: "\\t\\n\\v\\f\\r ",
  punct: "!-\\/:-@\\[-`{-~",
  word: "\\w",
  xdigit: "0-9A-Fa-f",
};

/**
 * Compiles a pattern in Go's syntax (RE2), which lacks look-around and back-references, and has leading flags (`(?i)`),
 * `\A`, `\z`, `(?P<name>` and POSIX classes. Returns an error, in Go's words where they are known, for one that is none.
 */
export function compilePattern(source: string): RegExp | Error {
  const known = compiled.get(source);
  if (known) return known;
  if (compiled.size >= maxCompiled) compiled.clear();
  const result = compile(source);
  compiled.set(source, result);
  return result;
}

function compile(source: string): RegExp | Error {
  const [, around] = /(?:^|[^\\])(\(\?<?[=!])/.exec(source) ?? [];
  if (around) return parseError(`invalid or unsupported Perl syntax: \`${around}\``);
  const [, reference] = /(?:^|[^\\])(\\[1-9])/.exec(source) ?? [];
  if (reference) return parseError(`invalid escape sequence: \`${reference}\``);
  const [prefix = "", flags = ""] = /^\(\?([ims]+)\)/.exec(source) ?? [];
  const pattern = source
    .slice(prefix.length)
    .replaceAll("(?P<", "(?<")
    .replaceAll("\\A", "^")
    .replaceAll("\\z", "$")
    .replace(/\[:(\w+):\]/g, (all, name: string) => classes[name] ?? all);
  try {
    return new RegExp(pattern, flags);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return parseError(/unterminated group/i.test(text) ? `missing closing ): \`${source}\`` : `${text}: \`${source}\``);
  }
}

function parseError(text: string): Error {
  return new Error(`error parsing regexp: ${text}`);
}
