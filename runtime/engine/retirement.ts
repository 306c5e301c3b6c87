import type { Clock } from "../base/clock.ts";
import type { SpillHeader } from "../journal/batch.ts";
import { type Checkpoint, retirementMs, type StoredView } from "../journal/checkpoint.ts";
import { spillByTurns } from "../journal/spill-by-turns.ts";
import { scheduleResource } from "../manifest/trigger-record.ts";
import type { EngineLog, EngineObserver } from "./delivery/observer.ts";

interface RetirementParts {
  readonly store: Checkpoint;
  readonly clock: Clock;
  readonly observer: EngineObserver;
  readonly log: EngineLog;
}

/** What a person can do. */
const putBack =
  "put the trigger back under this name and for this kind within seven days: its events are delivered then";

/** What becomes of views that no trigger has any more: they are set aside, and deleted after their time. */
export class Retirement {
  private readonly parts: RetirementParts;
  /** Of unloaded functions, by view: events that waited in memory alone. Their position stands before them. */
  private readonly inMemory = new Map<number, number>();

  constructor(parts: RetirementParts) {
    this.parts = parts;
  }

  /** Notes what an unloaded function's views had in memory alone. */
  note(inMemory: ReadonlyMap<number, number>): void {
    for (const [view, count] of inMemory) this.inMemory.set(view, count);
  }

  /** The function is loaded again: its views that are in use have it all. */
  forget(views: Iterable<number>): void {
    for (const view of views) this.inMemory.delete(view);
  }

  /** Sets views aside, and tells of what waits in them. */
  async retire(views: readonly StoredView[]): Promise<void> {
    const { store, clock, log } = this.parts;
    const onDisk = await this.onDisk(views);
    for (const { id, function: name, trigger, resource } of views) {
      // A schedule that comes back begins from then: only what is on disk comes back with it.
      const inMemory = resource === scheduleResource ? 0 : (this.inMemory.get(id) ?? 0);
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

  /** Deletes what was set aside for too long. Its events end with that. */
  async purge(): Promise<void> {
    const { store, clock, observer, log } = this.parts;
    const before = clock.now() - retirementMs;
    const views = await store.retiredViews(before);
    if (views.length === 0) return;
    const onDisk = await this.onDisk(views);
    const purged = await store.purge(before);
    // Functions are loaded side by side: one of them has deleted it.
    if (purged === 0) return;
    log.info({ views: purged }, "positions of removed functions deleted");
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
  }

  private async onDisk(views: readonly StoredView[]): Promise<ReadonlyMap<number, readonly SpillHeader[]>> {
    const found = new Map<number, SpillHeader[]>(views.map(({ id }) => [id, []]));
    for (const name of new Set(views.map((view) => view.function))) {
      for await (const header of spillByTurns(this.parts.store, name)) found.get(header.view)?.push(header);
    }
    return found;
  }
}
