import type { FunctionSet, FunctionSource } from "./function-source.ts";

/** Of another source the functions of these names alone. What is not chosen is not gone: its positions stay. */
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
      // One without a name may be a chosen one.
      rejected: rejected.filter(({ name }) => name === undefined || this.names.has(name)),
      faults,
      complete: false,
    };
  }
}
