import { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import type { SharedJournal } from "../journal/journal.ts";
import type { Elector } from "../lease/elector.ts";
import { copyJournal } from "./copy.ts";
import { type Layout, namesIn } from "./layout.ts";
import { placeIn } from "./location.ts";
import { endOf, type PlaceOptions, type SourceJournals } from "./sources.ts";

/** Where positions move to. */
export interface Destination {
  /** As the Lease names it. */
  readonly where: string;
  /** Copies the positions of these functions, and returns the Lease's annotations once they count there. */
  fill(names: ReadonlySet<string>): Promise<Readonly<Record<string, string>>>;
}

/**
 * Moves positions under the Lease that is held. One update of the Lease is the switch: until then the sources count,
 * whole, and the next to move copies again from the beginning.
 * @throws WatchfireError of the checkpoint section, WF_LEASE_LOST; the signal's reason
 */
export async function movePositions(
  { cluster, log }: Pick<PlaceOptions, "cluster" | "log">,
  elector: Elector,
  sources: SourceJournals,
  { where, fill }: Destination,
): Promise<void> {
  const from = placeIn(elector.annotations).where || "the data folder";
  const journals = sources.journals.map(({ store }) => store);
  for (const store of journals) if (cluster !== undefined) await claimCluster(store, cluster);
  const names = await namesIn(journals);
  const annotations = await fill(names);
  await sources.confirm();
  await elector.annotate(annotations);
  log.info({ from, to: where, functions: names.size }, "positions carried over");
  await sources.over(where).catch((error: unknown) => {
    log.warn({ error: String(error) }, "what positions were carried from was not cleared");
  });
}

/** Copies what belongs into the journal of a slot from each source. */
export async function copyAll(
  { layout, journals }: SourceJournals,
  to: { readonly layout: Layout; readonly slot: number; readonly store: Checkpoint },
  signal: AbortSignal,
): Promise<void> {
  for (const { slot, store } of journals)
    await copyJournal(store, to.store, { from: layout, source: slot, to: to.layout, target: to.slot }, signal);
}

/** Replaces what is in a journal with what belongs there. */
export async function fillJournal(
  journal: SharedJournal,
  sources: SourceJournals,
  to: { readonly layout: Layout; readonly slot: number },
  signal: AbortSignal,
): Promise<void> {
  await journal.clear(endOf(sources));
  await copyAll(sources, { ...to, store: new Checkpoint(journal) }, signal);
  await journal.syncWhole();
}
