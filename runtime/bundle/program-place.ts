import { pathToFileURL } from "node:url";

/** Adds the path of its file to a script for standard input, from which the script then resolves packages. */
export function placed(body: string, file: string): string {
  return `import { createRequire as requireFrom } from "node:module";
const programUrl = ${JSON.stringify(pathToFileURL(file).href)}, require = requireFrom(programUrl);
${body}`;
}
