import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { errorCodes } from "../../runtime/base/errors.ts";
import { help } from "../../runtime/cli/command.ts";
import { commands as everyCommand } from "../../runtime/cli/main.ts";
import { templates } from "../../runtime/cli/new-project/templates.ts";
import { boundsTable, sharesTable } from "./bounds/table.ts";
import { manifestTable } from "./manifest-table.ts";
import { metricsTable } from "./metrics-table.ts";
import { powersTable } from "./powers-table.ts";

const root = resolve(import.meta.dirname, "../..");

/** The page that each generated section is on. */
export const pages = {
  bounds: "runtime/docs/bounds.md",
  commands: "runtime/docs/commands.md",
  errors: "runtime/docs/errors.md",
  manifest: "runtime/docs/manifest.md",
  metrics: "runtime/docs/metrics.md",
  powers: "runtime/docs/security.md",
  recipes: "runtime/docs/recipes.md",
  restartOnConfig: "runtime/docs/recipes.md",
  serviceWebhook: "runtime/docs/recipes.md",
  shares: "runtime/docs/bounds.md",
} as const;

/** Every command, in the order of the help. */
export const commands = await Promise.all(Object.values(everyCommand).map((load) => load()));

/** Generators of the sections that are generated from code, by the name in their markers. */
const sections: Readonly<Record<keyof typeof pages, () => string>> = {
  bounds: boundsTable,
  commands: () => `\`\`\`\n${commands.map((each) => help(each)).join("\n")}\`\`\``,
  manifest: manifestTable,
  metrics: metricsTable,
  powers: powersTable,
  recipes: () =>
    [
      "| template | what its function does |",
      "| --- | --- |",
      ...Object.entries(templates).map(([name, summary]) => `| \`${name}\` | ${cell(summary)} |`),
    ].join("\n"),
  restartOnConfig: () => wholeTemplate("restart-on-config"),
  serviceWebhook: () => wholeTemplate("service-webhook"),
  shares: sharesTable,
  errors: () =>
    [
      "| code | meaning | what to do |",
      "| --- | --- | --- |",
      ...Object.entries(errorCodes).map(
        ([code, { summary, hint }]) => `| \`${code}\` | ${cell(summary)} | ${cell(hint)} |`,
      ),
    ].join("\n"),
};

const cell = (text: string): string => text.replaceAll("|", "\\|");

/** The manifest and the handler of a template. */
function wholeTemplate(name: keyof typeof templates): string {
  const [manifest, handler] = ["function.yaml", "handler.ts"].map((file) =>
    read(`runtime/cli/new-project/templates/${name}/functions/${name}/${file}`),
  );
  return `\`\`\`yaml\n${manifest}\`\`\`\n\n\`\`\`ts\n// functions/${name}/handler.ts\n${handler}\`\`\``;
}

/** Returns the page with its marked section regenerated. Throws if the page has no markers. */
export function refreshed(name: keyof typeof pages): string {
  const pattern = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(\\n<!-- /${name} -->)`);
  const text = read(pages[name]);
  if (!pattern.test(text)) throw new Error(`${pages[name]} has no section ${name}`);
  return text.replace(pattern, (_, before: string, after: string) => `${before}${sections[name]()}${after}`);
}

/** A file of the project as text. */
export const read = (file: string): string => readFileSync(resolve(root, file), "utf8");
