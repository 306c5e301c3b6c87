import type { Nats } from "../../checkpoint/jetstream-connection.ts";
import { KubernetesStore } from "../../checkpoint/kubernetes.ts";
import { SqliteStore } from "../../checkpoint/sqlite.ts";
import type { CheckpointStore, PreviousEnd } from "../../checkpoint/store.ts";
import type { Clock } from "../../clock.ts";
import { WatchfireError } from "../../errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { Elector } from "../../lease/elector.ts";
import type { Logger } from "../../observe/log.ts";
import { DataFolder } from "./data-folder.ts";
import { elsewhere } from "./elsewhere.ts";
import { alone, type Layout } from "./layout.ts";
import { openSlot } from "./open-nats.ts";
import { placeIn, positionsKey, slotName } from "./place.ts";

/** One of the stores that positions lie in. */
export interface Source {
  readonly slot: number;
  readonly store: CheckpointStore;
}

/** The stores that positions are carried from: nobody else writes to them. */
export interface Former {
  readonly layout: Layout;
  readonly sources: readonly Source[];
  /** Where they are on NATS, their set of slots. */
  readonly set: string | undefined;
  /** Says that they are in another place from now on, and forgets them. */
  over(place: string): Promise<void>;
  close(): Promise<void>;
}

export interface FormerOptions {
  readonly data: string;
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Opens what a runtime alone has left, under the Lease that is held. Undefined where the Lease says another place now.
 * @throws WatchfireError of the checkpoint section
 */
export async function openFormer(
  options: FormerOptions,
  elector: Elector,
  connection: Nats,
): Promise<Former | undefined> {
  const { where, set } = placeIn(elector.annotations);
  const { fence } = elector;
  if (!fence) throw new WatchfireError("WF_LEASE_LOST", { what: "it was lost before the store was open" });
  const onLost = () => {};
  if (where === "kubernetes" || where === "nats") {
    const opened =
      where === "nats"
        ? await openSlot({ ...options, connection, slot: slotName(set, 0), onLost }, elector)
        : await KubernetesStore.open({ ...options, fence, onLost });
    const former = ofOne(opened, (place) => opened.moveTo(place), where === "nats" ? set : undefined);
    if (opened.movedTo === undefined) {
      if (opened.previousEnd !== "new") return former;
      await former.close();
      throw elsewhere(`${where} holds no positions, though the Lease says so`);
    }
    await former.close();
    await elector.annotate({ [positionsKey]: opened.movedTo });
    return undefined;
  }
  const folder = new DataFolder(options.data, options.clock);
  if (folder.holdsPositions) {
    const store = new SqliteStore({ folder: options.data, maintenance: true });
    return ofOne(store, async () => undefined, undefined);
  }
  // Nobody has ever kept any.
  const none = async () => undefined;
  return where === "" ? { layout: alone, sources: [], set: undefined, over: none, close: none } : undefined;
}

const ofOne = (store: CheckpointStore, over: Former["over"], set: string | undefined): Former => ({
  layout: alone,
  sources: [{ slot: 0, store }],
  set,
  over,
  // How the last run ended is still to be known where this was in vain.
  close: () => store.close(store.previousEnd === "clean").catch(() => undefined),
});

const gravity: readonly PreviousEnd[] = ["new", "clean", "killed", "power-loss"];

/** How the last run of all of them ended: as the worst of them. */
export const endOf = (sources: readonly Source[]): PreviousEnd =>
  gravity[Math.max(0, ...sources.map(({ store }) => gravity.indexOf(store.previousEnd)))] ?? "new";
