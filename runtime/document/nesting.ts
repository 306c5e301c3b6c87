/** Deepest nesting that is accepted. A manifest has about ten levels. */
const deepest = 100;

/**
 * Returns where a text is nested too deeply, counted from 1; `undefined` if it is not. Must be called before parsing: a hostile
 * file could otherwise use the parser's recursion to end the process, because a stack overflow in V8's regular expressions is
 * fatal. Counts indentation, brackets, and the indicators `- `, `? ` and `: ` of one line, wherever they occur.
 */
export function tooDeep(text: string): { readonly line: number; readonly column: number } | undefined {
  const indents: number[] = [];
  let brackets = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const indent = line.search(/[^ \t]/);
    if (indent < 0 || line[indent] === "#" || line[indent] === "\r") continue;
    while ((indents.at(-1) ?? -1) >= indent) indents.pop();
    indents.push(indent);
    if (indents.length > deepest) return { line: index + 1, column: indent + 1 };
    let indicators = 0;
    for (const found of line.matchAll(/[[{]|[\]}]|[-?:](?=\s|$)/g)) {
      if (found[0] === "[" || found[0] === "{") brackets += 1;
      else if (found[0] === "]" || found[0] === "}") brackets = Math.max(0, brackets - 1);
      else indicators += 1;
      if (brackets > deepest || indicators > deepest) return { line: index + 1, column: found.index + 1 };
    }
  }
  return undefined;
}
