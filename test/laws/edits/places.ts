import type { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { CrashingStore, roomy } from "../crashing-store.ts";
import { ApiServer } from "../fleet/api-server.ts";
import { Cluster } from "../fleet/cluster.ts";
import { DataFolder, type Disk, InSecrets, mortal } from "../fleet/disk.ts";
import { Dice } from "../random.ts";
import { settingOf, type WorldPlace } from "../world.ts";

/** A store whose process may end at any moment. */
export interface OpenStore {
  readonly store: Checkpoint;
  /** Ends the process: nothing is written any more, and no call returns. */
  die(): void;
}

/** The store of a world, and the clock that it runs on. */
export interface Place {
  readonly clock: VirtualClock;
  /** How far back a kill may lose commits, in milliseconds. */
  readonly lostMs: number;
  /** True if a process finds the bodies of known objects that the previous one stored. */
  readonly keepsBodies: boolean;
  /** Opens the store for a new process. */
  open(dice: Dice): Promise<OpenStore>;
  remove(): void;
}

export const storeNames = ["memory", "sqlite", "secrets", "jetstream"] as const;
export type StoreName = (typeof storeNames)[number];

/** A place in this process. JetStream needs a server, and is created by `onServer`. */
export function placeOf(name: Exclude<StoreName, "jetstream">): Place {
  if (name === "memory") return inMemory();
  // Secrets are written every five seconds.
  return name === "sqlite" ? onDisk(new DataFolder(), 0, true) : onDisk(new InSecrets(), 6_000, false);
}

function inMemory(): Place {
  const disk = new MemoryDisk();
  return {
    clock: new VirtualClock(),
    lostMs: 0,
    keepsBodies: true,
    async open(dice) {
      const store = new CrashingStore(disk, dice, roomy, () => {});
      const die = () => {
        store.dead = true;
      };
      return { store, die };
    },
    remove() {},
  };
}

const calmServer = { watchList: true, pageSize: 100, faults: false, namesOldest: true, refusesOldLists: false };

function onDisk(disk: Disk, lostMs: number, keepsBodies: boolean): Place {
  const clock = new VirtualClock();
  let server: ApiServer | undefined;
  let began = false;
  return {
    clock,
    lostMs,
    keepsBodies,
    async open(dice) {
      if (began) disk.killed();
      began = true;
      server ??= new ApiServer(new Cluster(dice), calmServer, dice, clock);
      let dead = false;
      const store = mortal(await disk.open(server, clock), () => dead);
      const die = () => {
        dead = true;
      };
      return { store, die };
    },
    remove: () => disk.remove(),
  };
}

/** A place on a real NATS server, like that of the worlds without edits. */
export function onServer(place: WorldPlace): Place {
  return {
    clock: place.clock,
    lostMs: 0,
    keepsBodies: true,
    async open(dice) {
      const store = await place.open(
        dice,
        { ...settingOf(new Dice(1)), spillLimit: Number.POSITIVE_INFINITY },
        () => {},
      );
      const die = () => {
        store.dead = true;
      };
      return { store, die };
    },
    remove() {},
  };
}
