import { Checkpoint } from "../journal/checkpoint.ts";
import { claimCluster } from "../journal/cluster.ts";
import type { SharedJournal } from "../journal/journal.ts";
import type { Elector } from "../lease/elector.ts";
import { copyJournal } from "./copy.ts";
import { type Layout, namesIn } from "./layout.ts";
import { placeIn } from "./location.ts";
import { endOf, openSources, type PlaceOptions, type SourceJournals } from "./sources.ts";

/** The destination of a move. */
export interface Destination {
  /** The place, as the Lease names it. */
  readonly where: string;
  /** Copies the checkpoints of these functions. Returns the Lease's annotations that make the copy valid. */
  fill(sources: SourceJournals, names: ReadonlySet<string>): Promise<Readonly<Record<string, string>>>;
}

/**
 * Runs a migration: moves checkpoints while the Lease is held. One update of the Lease is the switch. Until then the sources remain valid and
 * complete, and the next move starts over. Returns `false`, without having moved anything, if the Lease names another place now,
 * or if active replicas are not waited for.
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
    log.info({ from, to: where, functions: names.size }, "checkpoints moved");
    await sources.over(where).catch((error: unknown) => {
      log.warn({ error: String(error) }, "previous store not cleared after the move");
    });
    return true;
  } finally {
    await sources.close();
  }
}

/** A slot of a layout whose journal is filled. */
interface Target {
  readonly layout: Layout;
  readonly slot: number;
}

/** Copies the slot's share of each source. */
export async function copyAll(
  { layout, journals }: SourceJournals,
  to: Checkpoint,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  for (const { slot, store } of journals)
    await copyJournal(store, to, { from: layout, source: slot, to: target.layout, target: target.slot }, signal);
}

/** Replaces the contents of a journal with the slot's share. */
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
