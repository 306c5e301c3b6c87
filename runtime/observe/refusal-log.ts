import type { WatchfireError } from "../errors.ts";
import type { Logger } from "./log.ts";

/** Something of the functions folder that cannot be used, and why: a manifest, or the folder itself. */
export interface Refused {
  readonly name: string | undefined;
  readonly file: string;
  readonly faults: readonly WatchfireError[];
}

/** One line for each manifest that begins to be refused, or is refused for other reasons than before. */
export class RefusalLog {
  private readonly log: Logger;
  private told = new Map<string, string>();

  constructor(log: Logger) {
    this.log = log;
  }

  /** @param refused everything that is refused now; what was before and is missing here is mended, or gone */
  tell(refused: readonly Refused[]): void {
    const now = new Map<string, string>();
    for (const { name, file, faults } of refused) {
      const key = name ?? file;
      const error = faults.map((fault) => fault.message).join("\n");
      if (this.told.get(key) !== error) this.log.error({ ...(name && { function: name }), error }, "manifest refused");
      now.set(key, error);
    }
    this.told = now;
  }

  /** Whether it was refused when last told: by the name it claims, or by its file. */
  has(name: string, file: string): boolean {
    return this.told.has(name) || this.told.has(file);
  }
}
