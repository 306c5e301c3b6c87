import { styleText } from "node:util";
import { clean } from "../base/wording.ts";

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
