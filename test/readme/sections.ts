import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { cluster } from "../../runtime/cli/cluster.ts";
import { type Command, help } from "../../runtime/cli/command.ts";
import { deadLetters } from "../../runtime/cli/dead-letters.ts";
import { deploy } from "../../runtime/cli/deploy.ts";
import { dev } from "../../runtime/cli/dev.ts";
import { doctor } from "../../runtime/cli/doctor.ts";
import { executor } from "../../runtime/cli/executor.ts";
import { rbac } from "../../runtime/cli/rbac.ts";
import { start } from "../../runtime/cli/start.ts";
import { validate } from "../../runtime/cli/validate.ts";
import { errorCodes } from "../../runtime/errors.ts";

export const readmeFile = resolve(import.meta.dirname, "../../README.md");

/** The README's parts that are made from code, by the name in their markers. */
const sections: Readonly<Record<string, () => string>> = {
  commands: () =>
    `\`\`\`\n${[dev, start, executor, cluster, validate, deploy, rbac, doctor, deadLetters].map(usage).join("\n")}\`\`\``,
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

const usage = (command: Command): string => help(command);

/** The text with every marked section made anew. Throws for a section without its markers. */
export function refreshed(text: string): string {
  let result = text;
  for (const [name, make] of Object.entries(sections)) {
    const pattern = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(\n<!-- /${name} -->)`);
    if (!pattern.test(result)) throw new Error(`README.md has no section ${name}`);
    result = result.replace(pattern, (_, before: string, after: string) => `${before}${make()}${after}`);
  }
  return result;
}

export const readme = (): string => readFileSync(readmeFile, "utf8");
