import type { Logger } from "../observe/log.ts";
import type { FunctionSet, FunctionSource } from "./function-source.ts";

/** Merges two sources: of two functions with one name, the one from `upper` runs, even while it is refused. */
export class MergedSource implements FunctionSource {
  private readonly lower: FunctionSource;
  private readonly upper: FunctionSource;
  private readonly log: Pick<Logger, "warn">;
  /** Names for which the log already says that one function hides the other. */
  private hidden = new Set<string>();

  constructor(lower: FunctionSource, upper: FunctionSource, log: Pick<Logger, "warn">) {
    this.lower = lower;
    this.upper = upper;
    this.log = log;
  }

  get trouble() {
    return this.upper.trouble ?? this.lower.trouble;
  }

  async read(signal: AbortSignal): Promise<FunctionSet> {
    const [lower, upper] = await Promise.all([this.lower.read(signal), this.upper.read(signal)]);
    const taken = new Set(namesOf(upper));
    this.sayHidden(new Set(namesOf(lower).filter((name) => taken.has(name))));
    const rejected = lower.rejected.filter(({ name }) => name === undefined || !taken.has(name));
    return {
      functions: [...lower.functions.filter(({ manifest }) => !taken.has(manifest.name)), ...upper.functions],
      rejected: [...rejected, ...upper.rejected],
      faults: [...lower.faults, ...upper.faults],
      unreadNamespaces: [...(lower.unreadNamespaces ?? []), ...(upper.unreadNamespaces ?? [])],
      complete: lower.complete && upper.complete,
    };
  }

  private sayHidden(now: Set<string>): void {
    for (const name of now) {
      if (!this.hidden.has(name)) this.log.warn({ function: name }, "deployed function runs instead of the folder's");
    }
    this.hidden = now;
  }
}

const namesOf = ({ functions, rejected }: FunctionSet): string[] => [
  ...functions.map(({ manifest }) => manifest.name),
  ...rejected.flatMap(({ name }) => name ?? []),
];
