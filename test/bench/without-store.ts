// Imported into a measured process: stores no checkpoints, so that the remaining cost is visible.
import { registerHooks } from "node:module";
import type { JournalEntries } from "../../runtime/journal/batch.ts";
import { MemoryJournal } from "../../runtime/journal/memory/journal.ts";

/** Replaces the journal of the same name. */
export class SqliteJournal extends MemoryJournal {
  override readonly capabilities = { queues: true, bodies: false, packed: false };

  override async append({ views }: JournalEntries): Promise<void> {
    for (const view of views) this.state.putView(view);
  }
}

registerHooks({
  resolve: (specifier, context, next) =>
    specifier.endsWith("journal/sqlite/journal.ts")
      ? { url: import.meta.url, shortCircuit: true }
      : next(specifier, context),
});
