import { WatchfireError } from "../../errors.ts";
import { systemReason } from "../../wording.ts";

/** Does `write`. @throws WatchfireError WF_DEV_CLUSTER_FILES in place of what the file system says of `file` */
export function writing<T>(file: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error || "code" in error) || error instanceof WatchfireError)
      throw error;
    throw new WatchfireError("WF_DEV_CLUSTER_FILES", {
      what: `it cannot be written: ${systemReason(error)}`,
      place: { file },
      cause: error,
    });
  }
}
