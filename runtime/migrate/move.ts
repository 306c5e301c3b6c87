import { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import type { SharedJournal } from "../journal/journal.ts";
import type { Elector } from "../lease/elector.ts";
import { copyJournal } from "./copy.ts";
import { type Layout, namesIn } from "./layout.ts";
import { placeIn } from "./location.ts";
import { endOf, openSources, type PlaceOptions, type SourceJournals } from "./sources.ts";

/** Where positions move to. */
export interface Destination {
  /** As the Lease names it. */
  readonly where: string;
  /** Copies the positions of these functions, and returns the Lease's annotations with which they count there. */
  fill(sources: SourceJournals, names: ReadonlySet<string>): Promise<Readonly<Record<string, string>>>;
}

/**
 * Moves positions under the Lease that is held. One update of the Lease is the switch: until then the sources count,
 * whole, and the next to move copies again from the beginning. Returns `false`, and has moved nothing, if the Lease names
 * another place now, or if replicas work that are not waited for.
 * @throws WatchfireError of the checkpoint section, WF_LEASE_LOST; the signal's reason
 */
export async function movePositions(
  options: PlaceOptions,
  elector: Elector,
  { where, fill }: Destination,
  signal: AbortSignal,
): Promise<boolean> {
  const { cluster, log } = options;
  const from = placeIn(elector.annotations).where || "the data folder";
  const sources = await openSources(options, elector, signal);
  if (!sources) return false;
  try {
    const journals = sources.journals.map(({ store }) => store);
    for (const store of journals) if (cluster !== undefined) await claimCluster(store, cluster);
    const names = await namesIn(journals);
    const annotations = await fill(sources, names);
    await sources.confirm();
    await elector.annotate(annotations);
    log.info({ from, to: where, functions: names.size }, "positions carried over");
    await sources.over(where).catch((error: unknown) => {
      log.warn({ error: String(error) }, "what positions were carried from was not cleared");
    });
    return true;
  } finally {
    await sources.close();
  }
}

/** A slot of a layout, whose journal is filled. */
interface Target {
  readonly layout: Layout;
  readonly slot: number;
}

/** Copies what belongs into the slot from each source. */
export async function copyAll(
  { layout, journals }: SourceJournals,
  to: Checkpoint,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  for (const { slot, store } of journals)
    await copyJournal(store, to, { from: layout, source: slot, to: target.layout, target: target.slot }, signal);
}

/** Replaces what is in a journal with what belongs into the slot. */
export async function fillJournal(
  sources: SourceJournals,
  journal: SharedJournal,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  await journal.clear(endOf(sources));
  await copyAll(sources, new Checkpoint(journal), target, signal);
  await journal.syncWhole();
}
