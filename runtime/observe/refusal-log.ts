import type { WatchfireError } from "../base/errors.ts";
import type { Logger } from "./log.ts";

/** Something of the functions folder that cannot be used, and why: a manifest, or the folder itself. */
export interface RefusedFunction {
  readonly name: string | undefined;
  readonly file: string;
  readonly faults: readonly WatchfireError[];
  /** It is the folder: no function's coming will tell that it is mended. */
  readonly isFolder?: boolean;
}

/** One line for each manifest that begins to be refused, or is refused for other reasons than before. */
export class RefusalLog {
  private readonly log: Logger;
  private told = new Map<string, string>();
  private folders = new Set<string>();

  constructor(log: Logger) {
    this.log = log;
  }

  /** @param refused everything that is refused now; what was before and is missing here is mended, or gone */
  tell(refused: readonly RefusedFunction[]): void {
    const now = new Map<string, string>();
    for (const { name, file, faults, isFolder } of refused) {
      const key = name ?? file;
      const error = faults.map((fault) => fault.message).join("\n");
      if (this.told.get(key) !== error)
        this.log.error(
          { ...(name && { function: name }), error },
          isFolder ? "functions folder refused" : "manifest refused",
        );
      now.set(key, error);
    }
    for (const folder of this.folders) if (!now.has(folder)) this.log.info({ folder }, "functions folder mended");
    this.folders = new Set(refused.flatMap(({ isFolder, file }) => (isFolder ? file : [])));
    this.told = now;
  }

  /** Whether it was refused when last told: by the name it claims, or by its file. */
  has(name: string, file: string): boolean {
    return this.told.has(name) || this.told.has(file);
  }
}
