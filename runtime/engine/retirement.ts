import type { Clock } from "../base/clock.ts";
import type { SpillHeader } from "../journal/batch.ts";
import { type Checkpoint, retirementMs, type StoredView, spillByTurns } from "../journal/checkpoint.ts";
import { hasNoObjects } from "../manifest/trigger-record.ts";
import type { EngineLog, EngineObserver } from "./delivery/observer.ts";

interface RetirementParts {
  readonly store: Checkpoint;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/** The hint for users. */
const putBack =
  "put the trigger back under this name and for this kind within seven days: its events are delivered then";

/** Retires the views of triggers that no manifest has any more: keeps them for a time, then deletes them. */
export class Retirement {
  private readonly parts: RetirementParts;
  /** The number of events that waited in memory alone, by view of an unloaded function. They are after its checkpoint. */
  private readonly inMemory = new Map<number, number>();

  constructor(parts: RetirementParts) {
    this.parts = parts;
  }

  /** Records what an unloaded function's views had in memory alone. */
  note(inMemory: ReadonlyMap<number, number>): void {
    for (const [view, count] of inMemory) this.inMemory.set(view, count);
  }

  /** Drops these counts for views that are in use again, because the function was loaded. */
  forget(views: Iterable<number>): void {
    for (const view of views) this.inMemory.delete(view);
  }

  /** Retires views, and logs how many events wait in them. */
  async retire(views: readonly StoredView[]): Promise<void> {
    const { store, clock, log } = this.parts;
    const onDisk = await this.onDisk(views);
    for (const { id, function: name, trigger, resource } of views) {
      // A schedule that is put back starts from then, so only its events on disk are kept.
      const inMemory = hasNoObjects(resource) ? 0 : (this.inMemory.get(id) ?? 0);
      const waiting = inMemory + (onDisk.get(id)?.length ?? 0);
      if (waiting > 0)
        log.warn({ function: name, trigger, waiting, hint: putBack }, "trigger is gone, its events wait");
    }
    await store.retire(
      views.map(({ id }) => id),
      clock.now(),
    );
    this.forget(views.map(({ id }) => id));
  }

  /** Deletes views whose time is over, and drops their events. Returns whether there were any. */
  async purge(): Promise<boolean> {
    const { store, clock, observer, log } = this.parts;
    const before = clock.now() - retirementMs;
    const views = await store.retiredViews(before);
    if (views.length === 0) return false;
    const onDisk = await this.onDisk(views);
    const purged = await store.purge(before);
    // Functions are loaded concurrently: another load has deleted them.
    if (purged === 0) return false;
    log.info({ views: purged }, "checkpoints of removed functions deleted");
    for (const { id, function: name, trigger } of views) {
      const headers = onDisk.get(id) ?? [];
      for (const each of headers)
        observer.event?.(name, trigger, each.kind === "key" ? "Modified" : each.type, "dropped");
      if (headers.length === 0) continue;
      log.warn(
        { function: name, trigger, dropped: headers.length },
        "events dropped, their trigger is gone for seven days",
      );
    }
    return true;
  }

  private async onDisk(views: readonly StoredView[]): Promise<ReadonlyMap<number, readonly SpillHeader[]>> {
    const found = new Map<number, SpillHeader[]>(views.map(({ id }) => [id, []]));
    for (const name of new Set(views.map((view) => view.function))) {
      for await (const header of spillByTurns(this.parts.store, name)) found.get(header.view)?.push(header);
    }
    return found;
  }
}
