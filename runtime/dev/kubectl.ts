import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Page that explains how to install kubectl. */
export const kubectlPage = "https://kubernetes.io/docs/tasks/tools/";

/** Returns the path of the kubectl that a shell would run; `undefined` if there is no kubectl. */
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
