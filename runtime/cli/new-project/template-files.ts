import { material } from "./material.ts";
import type { Template } from "./templates.ts";

/** Lets an editor complete the manifest. */
const schemaLine = "# yaml-language-server: $schema=../../node_modules/@watchfire/runtime/function.schema.json\n";

/** Returns the settings of editors, by their paths in a project. They name the schema of manifests that do not. */
export const editorFiles = (functions: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(material.folders.common ?? {})
      .filter(([path]) => path.startsWith(".vscode/"))
      .map(([path, text]) => [path, text.replace("functions/*/", `${functions}/*/`)]),
  );

interface Renaming {
  /** The function's name. Default: the template's. */
  readonly name?: string;
  /** The name of the functions folder. Default: `functions`. */
  readonly functions?: string;
}

/** Returns the files of a template, by their paths in a project. Each manifest begins with the line that names its schema. */
export function templateFiles(
  template: Template,
  { name, functions = "functions" }: Renaming = {},
): Record<string, string> {
  const files = Object.entries(material.folders[template] ?? {});
  const [, own = ""] = files.map(([path]) => /^functions\/([^/]+)\//.exec(path)).find((match) => match) ?? [];
  const [from, to] = [`functions/${own}/`, `${functions}/${name ?? own}/`];
  const renamed = files.map(([path, text]): [string, string] => {
    if (path.endsWith("/function.yaml")) {
      const named = text.replace(`metadata: { name: ${own} }`, `metadata: { name: ${name ?? own} }`);
      return [path.replace(from, to), schemaLine + named];
    }
    if (path.startsWith("test/")) {
      return [path.replace(`test/${own}.`, `test/${name ?? own}.`), text.replaceAll(`"../${from}`, `"../${to}`)];
    }
    return [path.replace(from, to), text];
  });
  return Object.fromEntries(renamed);
}
