import { styleText } from "node:util";
import { clean } from "../base/wording.ts";

/**
 * Left-aligned columns, two spaces apart; the header is dimmed where the terminal can.
 * @returns a line for the header and for each row, fit for a terminal: control characters of a cell are written out, a line
 *   break or a tab is a space
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
