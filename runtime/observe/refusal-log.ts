import type { WatchfireError } from "../base/errors.ts";
import type { Logger } from "./log.ts";

/** An unusable manifest, or the functions folder itself, with the reasons. */
export interface RefusedFunction {
  readonly name: string | undefined;
  readonly file: string;
  readonly faults: readonly WatchfireError[];
  /** Whether it is the folder. Its recovery is logged separately, because no function's load shows it. */
  readonly isFolder?: boolean;
}

/** Logs one line for each manifest that is refused for the first time, or for other reasons than before. */
export class RefusalLog {
  private readonly log: Logger;
  private told = new Map<string, string>();
  private folders = new Set<string>();

  constructor(log: Logger) {
    this.log = log;
  }

  /** @param refused everything refused now; entries missing since the last call were fixed or removed */
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
    for (const folder of this.folders) if (!now.has(folder)) this.log.info({ folder }, "functions folder fixed");
    this.folders = new Set(refused.flatMap(({ isFolder, file }) => (isFolder ? file : [])));
    this.told = now;
  }

  /** Whether it was refused at the last call, by the name it claims or by its file. */
  has(name: string, file: string): boolean {
    return this.told.has(name) || this.told.has(file);
  }
}
