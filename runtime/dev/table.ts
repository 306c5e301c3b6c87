import { styleText } from "node:util";

/** Left-aligned columns, two spaces apart; the header is dimmed where the terminal can. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [styleText("gray", line(header)), ...rows.map(line)];
}
