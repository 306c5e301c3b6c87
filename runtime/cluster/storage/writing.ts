import { ClusterError } from "../cluster-error.ts";
import { systemReason } from "./system-reason.ts";

/** Runs `write`. @throws ClusterError FILE_REFUSED instead of the file system's error for `file` */
export function writing<T>(file: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error || "code" in error) || error instanceof ClusterError)
      throw error;
    const what = `it cannot be written: ${systemReason(error)}`;
    throw new ClusterError("FILE_REFUSED", { what, file, cause: error });
  }
}
