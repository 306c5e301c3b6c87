import { isAbsolute, relative, resolve } from "node:path";

/** Name of the generated entry in messages and maps. */
export const entrySource = "watchfire-entry";

/** Returns a path as shown to users: relative to the working directory if it is below it, otherwise absolute. */
export function displayPath(file: string, workingFolder: string): string {
  const absolute = resolve(workingFolder, file);
  const below = relative(workingFolder, absolute);
  return below === "" || below.startsWith("..") || isAbsolute(below) ? absolute : below;
}

/** Whether a file was installed rather than written by the function's author. */
export const isInstalled = (file: string): boolean => /(?:^|[\\/])node_modules[\\/]/.test(file);
