import { pathToFileURL } from "node:url";

/** A script from standard input has no place of its own to look for packages from: it is told that of its file. */
export function placed(body: string, file: string): string {
  return `import { createRequire as requireFrom } from "node:module";
const programUrl = ${JSON.stringify(pathToFileURL(file).href)}, require = requireFrom(programUrl);
${body}`;
}
