/** Lines before the one in question. */
const before = 2;
/** Characters of a line; minified code has lines without end. */
const maxWidth = 160;

const authorsFrame = /^\s+at (?:.*\()?([^()]+\.[cm]?[jt]sx?):(\d+):(\d+)\)?$/m;

/**
 * The source around a stack's topmost frame, with a caret below the place: for a person's terminal, never for a record.
 * `read` gives a file's text as it ran, or undefined for one that is not to be shown. Undefined where there is nothing to show.
 */
export function codeFrame(stack: string, read: (file: string) => string | undefined): string | undefined {
  const match = authorsFrame.exec(stack);
  if (!match) return undefined;
  const [, file = "", line, column] = match;
  const text = read(file);
  return text === undefined ? undefined : frameAt(text, Number(line), Number(column));
}

/** The lines of a text up to a place, with a caret below it. Undefined where there is nothing to show. */
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
  // Tabs stay tabs, so that the caret stands where the terminal puts the character.
  const indent = (lines[line - 1] ?? "").slice(0, column - 1).replace(/[^\t]/g, " ");
  return [...shown, `  ${" ".repeat(width)} | ${indent}^`].join("\n");
}
