import type { FunctionSet, FunctionSource } from "../../catalog/function-source.ts";
import { slotOf } from "../../fleet/rendezvous.ts";

/** All functions of a fleet, read once for all the slots that a replica has. */
export class Catalogue {
  private readonly source: FunctionSource;
  private readonly slots: number;
  private readonly first = Promise.withResolvers<FunctionSet>();
  private latest: Promise<FunctionSet> = this.first.promise;
  private known: readonly string[] = [];

  constructor(source: FunctionSource, slots: number) {
    this.source = source;
    this.slots = slots;
  }

  /** The names that were read last. */
  get names(): readonly string[] {
    return this.known;
  }

  /** Reads all anew. @throws the signal's reason */
  async read(signal: AbortSignal): Promise<void> {
    const set = await this.source.read(signal);
    this.latest = Promise.resolve(set);
    // Slots that were taken before wait for it.
    this.first.resolve(set);
    this.known = [
      ...set.functions.map(({ manifest }) => manifest.name),
      ...set.rejected.flatMap(({ name }) => name ?? []),
    ];
  }

  /** Those of one slot. What has no name is told of in the slot that its file falls into. */
  of(slot: number): FunctionSource {
    const isHere = (name: string) => slotOf(name, this.slots) === slot;
    return {
      read: async () => {
        const { functions, rejected, faults, complete } = await this.latest;
        return {
          functions: functions.filter(({ manifest }) => isHere(manifest.name)),
          rejected: rejected.filter(({ name, file }) => isHere(name ?? file)),
          faults: isHere("") ? faults : [],
          complete,
        };
      },
    };
  }
}
