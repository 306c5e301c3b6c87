import type { FunctionSet, FunctionSource } from "./function-source.ts";

/** Restricts another source to functions with these names. The others do not count as removed: their checkpoints stay. */
export class ChosenSource implements FunctionSource {
  private readonly source: FunctionSource;
  private readonly names: ReadonlySet<string>;

  constructor(source: FunctionSource, names: Iterable<string>) {
    this.source = source;
    this.names = new Set(names);
  }

  async read(signal: AbortSignal): Promise<FunctionSet> {
    const { functions, rejected, faults } = await this.source.read(signal);
    return {
      functions: functions.filter(({ manifest: { name } }) => this.names.has(name)),
      // A function without a name may be one of those chosen.
      rejected: rejected.filter(({ name }) => name === undefined || this.names.has(name)),
      faults,
      complete: false,
    };
  }
}
