import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Where kubectl comes from. */
export const kubectlPage = "https://kubernetes.io/docs/tasks/tools/";

/** The path of the kubectl that a shell would run; undefined where there is none. */
export function findKubectl(path: string | undefined): string | undefined {
  const names = process.platform === "win32" ? ["kubectl.exe"] : ["kubectl"];
  const folders = (path ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(canRun);
}

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
