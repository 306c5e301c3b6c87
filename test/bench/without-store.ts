// Imported into a measured process: its positions are kept nowhere. What is left is the cost without checkpoints.
import { registerHooks } from "node:module";
import type { Batch } from "../../runtime/journal/batch.ts";
import { MemoryDisk, MemoryStore } from "../../runtime/journal/memory/journal.ts";

/** In the place of the store of the same name. */
export class SqliteStore extends MemoryStore {
  override readonly writesBodies = false;

  constructor() {
    super(new MemoryDisk());
  }

  override async commit(_: Batch): Promise<readonly string[]> {
    return [];
  }
}

registerHooks({
  resolve: (specifier, context, next) =>
    specifier.endsWith("journal/sqlite/journal.ts")
      ? { url: import.meta.url, shortCircuit: true }
      : next(specifier, context),
});
