import { existsSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { systemReason } from "../base/wording.ts";
import * as names from "../kube/names.ts";
import { command } from "./command.ts";
import { isTemplate, type Template, templates } from "./new-project/templates.ts";
import { FolderError, writeFiles } from "./new-project/write-files.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";
import { shellWord } from "./shell-word.ts";

export const newFunction = command({
  name: "new",
  summary: "adds a function to a project: its manifest, handler, unit test, a fixture and, where it helps, a sample",
  operands: "NAME",
  options: {
    template: {
      value: "NAME",
      summary: `one of ${Object.keys(templates).join(", ")}`,
      default: "hello" satisfies Template,
    },
    functions: functionsFolder,
  },
  async run({ options, operands }) {
    const name = readFunctionName(operands);
    const template = readTemplate(options.template);
    const folder = resolve(readFolder(options.functions));
    const project = dirname(folder);
    const { editorFiles, templateFiles } = await import("./new-project/template-files.ts");
    const files = templateFiles(template, { name, functions: basename(folder) });
    const shown = (path: string) => relative(process.cwd(), path);
    const taken = [join(folder, name), ...Object.keys(files).map((path) => join(project, path))].find(existsSync);
    if (taken !== undefined) {
      const hint = "take another name, or remove it";
      throw new WatchfireError("WF_CLI_USAGE", { what: "it exists already", place: { file: shown(taken) }, hint });
    }
    const editor = Object.entries(editorFiles(basename(folder))).filter(([path]) => !existsSync(join(project, path)));
    const written = { ...files, ...Object.fromEntries(editor) };
    try {
      writeFiles(project, written);
    } catch (error) {
      if (!(error instanceof FolderError)) throw error;
      const hint = "name the functions folder of a project that you may write with --functions";
      const [what, place] = [systemReason(error.cause), { file: project }];
      throw new WatchfireError("WF_CLI_FOLDER", { what, place, cause: error.cause, hint });
    }
    const option = options.functions === functionsFolder.default ? "" : ` --functions ${shellWord(options.functions)}`;
    process.stdout.write(
      [
        ...Object.keys(written).map((path) => `  ${shown(join(project, path))}`),
        `next: npx watchfire test ${name}${option} && npx watchfire dev${option}\n`,
      ].join("\n"),
    );
    return 0;
  },
});

/** @throws WatchfireError WF_CLI_USAGE */
function readFunctionName(operands: readonly string[]): string {
  const [name, ...more] = operands;
  if (name === undefined || more.length > 0) {
    const what = name === undefined ? "new takes the function's NAME" : `new takes one NAME, got ${operands.join(" ")}`;
    throw new WatchfireError("WF_CLI_USAGE", { what });
  }
  if (names.dnsLabel.test(name)) return name;
  throw new WatchfireError("WF_CLI_USAGE", {
    what: "NAME is not a valid function name",
    actual: name,
    hint: "use small letters, digits and -, 63 at most, with a letter or digit at both ends",
  });
}

/** @throws WatchfireError WF_CLI_USAGE */
function readTemplate(name: string): Template {
  if (isTemplate(name)) return name;
  const known = Object.keys(templates);
  const meant = suggest(name, known);
  const hint = meant === undefined ? `there are ${known.join(", ")}` : `did you mean ${meant}?`;
  throw new WatchfireError("WF_CLI_USAGE", { what: "there is no such template", actual: name, hint });
}
