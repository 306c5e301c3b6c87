import { styleText } from "node:util";
import { clean, cut } from "../base/wording.ts";

/**
 * Formats left-aligned columns, two spaces apart; the header is dimmed if the terminal supports it.
 * @returns a line for the header and for each row, safe for a terminal: control characters of a cell are escaped, and a line
 * break or tab becomes a space
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const shown = rows.map((row) => row.map((cell) => clean(cell.replace(/[\n\t]/g, " "))));
  const widths = header.map((title, column) => Math.max(title.length, ...shown.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [styleText("gray", line(header)), ...shown.map(line)];
}

/** Maximum number of characters of a cell whose whole text is below its row. */
const longestCell = 80;

/** Returns a text in one line. */
export const inOneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/**
 * Formats a table as `table` does, with short cells in the columns from `first` on. A text that is too long is cut in its row, and
 * whole in a line below it, because its end may say what to do.
 */
export function tableOfTexts(header: readonly string[], rows: readonly (readonly string[])[], first: number): string[] {
  const texts = rows.map((row) => row.map((cell, column) => (column < first ? cell : inOneLine(cell))));
  const shown = texts.map((row) => row.map((cell, column) => (column < first ? cell : cut(cell, longestCell))));
  const [titles = "", ...lines] = table(header, shown);
  return [
    titles,
    ...lines.flatMap((line, index) => {
      const whole = (texts[index] ?? []).flatMap((text, column) =>
        column < first || text.length <= longestCell ? [] : `    ${header[column]}: ${clean(text)}`,
      );
      return [line, ...whole];
    }),
  ];
}
