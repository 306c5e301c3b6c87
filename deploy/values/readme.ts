import type { Value } from "./values.ts";

const marked = /(<!-- values -->\n)[\s\S]*?(\n<!-- \/values -->)/;

/** Returns the chart's README with a regenerated table of values. */
export function refreshed(readme: string, values: readonly Value[]): string {
  if (!marked.test(readme)) throw new Error("the chart's README has no section `values`");
  return readme.replace(marked, (_, before: string, after: string) => `${before}${table(values)}${after}`);
}

function table(values: readonly Value[]): string {
  const rows = values.flatMap((value) => rowsOf(value, ""));
  return ["| value | default | meaning |", "| --- | --- | --- |", ...rows].join("\n");
}

function rowsOf({ name, description, default: value, children, schema }: Value, path: string): string[] {
  const full = `${path}${name}`;
  const meaning = [description, choices(schema)].filter((text) => text !== "").join(" ");
  const own = `| \`${full}\` | ${children ? "" : `\`${JSON.stringify(value)}\``} | ${cell(meaning)} |`;
  // A group without a description needs no row.
  if (!children) return [own];
  return [...(description === "" ? [] : [own]), ...children.flatMap((child) => rowsOf(child, `${full}.`))];
}

const choices = ({ enum: values }: Value["schema"]): string =>
  Array.isArray(values) ? `One of ${values.map((value) => `\`${value}\``).join(", ")}.` : "";

const cell = (text: string): string => text.replaceAll("|", "\\|");
