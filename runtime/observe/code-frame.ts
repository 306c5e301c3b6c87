/** Lines shown before the one in question. */
const before = 2;
/** Maximum characters of a shown line. Lines of minified code can be arbitrarily long. */
const maxWidth = 160;

const authorsFrame = /^\s+at (?:.*\()?([^()]+\.[cm]?[jt]sx?):(\d+):(\d+)\)?$/m;

/**
 * Returns the source around a stack's topmost frame with a caret below the position, or `undefined` if there is nothing to show.
 * For a person's terminal, never for stored data. `read` returns a file's text as it ran, or `undefined` for a file that must not
 * be shown.
 */
export function codeFrame(stack: string, read: (file: string) => string | undefined): string | undefined {
  const match = authorsFrame.exec(stack);
  if (!match) return undefined;
  const [, file = "", line, column] = match;
  const text = read(file);
  return text === undefined ? undefined : frameAt(text, Number(line), Number(column));
}

/** Returns the lines of a text up to a position, with a caret below it, or `undefined` if there is nothing to show. */
export function frameAt(source: string, line: number, column: number): string | undefined {
  const lines = source.split(/\r?\n/);
  if (line > lines.length || column > maxWidth) return undefined;
  const first = Math.max(1, line - before);
  const width = String(line).length;
  const shown = lines
    .slice(first - 1, line)
    .map(
      (text, index) =>
        `${first + index === line ? ">" : " "} ${String(first + index).padStart(width)} | ${text.slice(0, maxWidth)}`,
    );
  // Tabs are kept, so that the caret is below the character on the terminal.
  const indent = (lines[line - 1] ?? "").slice(0, column - 1).replace(/[^\t]/g, " ");
  return [...shown, `  ${" ".repeat(width)} | ${indent}^`].join("\n");
}
