import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Fence } from "../../lease/elector.ts";
import { notThere, type PreviousEnd } from "../journal.ts";
import { MemoryDisk } from "../memory/journal.ts";
import { applyEntry } from "../memory/log-entry.ts";
import type { JetstreamBodies } from "./bodies.ts";
import type { Nats } from "./connection.ts";
import { natsFault } from "./fault.ts";
import { fenced, JetstreamLog, type LastMessage, type Note, rewound } from "./log.ts";
import { readSnapshot } from "./snapshot.ts";

/** Somebody else is as quick each time: more is no chance. */
const claims = 5;

/** Remembers outside NATS how far it had come, so that streams that are gone, empty or older are known as that. */
export interface Witness {
  /** What was written last; "" where nothing was. */
  read(): string;
  write(mark: string): Promise<void>;
}

export interface SlotOptions {
  readonly nats: Nats;
  /** Which part of the runtime's positions; one store has it at a time. Letters, digits, `-` and `_`. */
  readonly slot: string;
  /** Of the Lease that is held; whoever held the same Lease earlier is refused. Default: the last to open it has it. */
  readonly fence?: Fence | undefined;
  readonly witness?: Witness | undefined;
  /** Whether it is to hold positions: where it never did it stays as it is, and is not opened. Default false. */
  readonly isThere?: boolean;
  readonly clock: Clock;
}

/** A slot that was taken: nobody else writes into it any more. */
export interface TakenSlot {
  readonly log: JetstreamLog;
  readonly disk: MemoryDisk;
  /** What each message says besides its rows, from the first on. */
  readonly note: Note;
  readonly previousEnd: PreviousEnd;
  /** Why acknowledged writes may be missing. */
  readonly loss: WatchfireError | undefined;
  /** Where the positions went, if they went to another store. */
  readonly moved: string | undefined;
  /** Of the snapshot, and of the log behind it, in bytes; and how many messages that has. */
  readonly sizes: { readonly snapshot: number; readonly log: number; readonly messages: number };
  /** Objects that hold entries. */
  readonly objects: readonly string[];
}

/**
 * Puts a first message of one's own into a slot, and reads all that lies before it.
 * @throws WatchfireError of the checkpoint section; what the client throws
 */
export async function takeSlot(
  { nats, slot, fence, witness, isThere, clock }: SlotOptions,
  bodies: JetstreamBodies,
): Promise<TakenSlot> {
  for (let tries = 0; tries < claims; tries++) {
    const log = new JetstreamLog(nats, clock, slot);
    // A loss that an open slot finds is recorded before this one is opened.
    await nats.checked();
    const streams = await nats.identity();
    await bodies.begin();
    const last = await log.read();
    const before = last?.note;
    if (before?.fence && before.fence.lease === fence?.lease && before.fence.number > fence.number)
      throw fenced(before.fence.number);
    const loss = lossOf(last, witness?.read() ?? "", streams, nats.loneServer);
    const previousEnd = endOf(last, loss);
    if (isThere && previousEnd === "new") throw notThere("NATS holds no positions");
    const moved = before?.end.startsWith("moved:") ? before.end.slice("moved:".length) : undefined;
    const { snapshot } = before ?? {};
    const note: Note = { fence, end: "running", inDoubt: previousEnd === "power-loss", streams, snapshot };
    const first = moved === undefined ? note : { ...note, end: `moved:${moved}` as const };
    if (!(await log.claim(first, last?.sequence ?? 0))) continue;
    const disk = new MemoryDisk();
    const found = await readAll(nats, slot, log, note, disk, bodies);
    // Another replica may have found a loss since.
    const isRewound = (await nats.identity()) !== streams;
    if (isRewound) continue;
    disk.end = previousEnd;
    await witness?.write(markOf(log.sequence, streams));
    return { log, disk, note, previousEnd, loss, moved, ...found };
  }
  throw new WatchfireError("WF_CHECKPOINT_FENCED", { what: "other replicas open its subject on NATS again and again" });
}

type SlotReadOptions = Pick<SlotOptions, "nats" | "slot" | "clock">;

/** What lies in a slot, which is left as it is. @throws WatchfireError of the checkpoint section */
export async function readSlot({ nats, slot, clock }: SlotReadOptions): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const log = new JetstreamLog(nats, clock, slot);
  try {
    const last = await log.read();
    if (!last) return disk;
    const { object, sequence = 0 } = last.note.snapshot ?? {};
    if (object !== undefined) await readSnapshot(nats, slot, object, disk);
    await log.entries(sequence, (entry) => void applyEntry(disk, entry), last.sequence);
    return disk;
  } catch (error) {
    throw natsFault(error, "positions could not be read");
  }
}

/** What a witness is told. */
export const markOf = (sequence: number, streams: string): string => `${sequence} ${streams}`;

/** Whether what was acknowledged can be missing, and why. */
function lossOf(
  last: LastMessage | undefined,
  mark: string,
  streams: string,
  server: string | undefined,
): WatchfireError | undefined {
  const [, known = "0", witnessed = streams] = /^(\d+) (.*)$/.exec(mark) ?? [];
  if (!last && mark !== "") return rewound("it is empty, or was made anew", 0);
  if (last && last.sequence < Number(known)) return rewound(`it ends before ${known}`, last.sequence);
  if (witnessed !== streams || (last && last.note.streams !== streams))
    return rewound("one of the streams was made anew", streams);
  if (last?.note.end !== "running" || last.note.server === undefined || last.note.server === server) return undefined;
  return rewound("its server, which is no cluster, was started again and may have lost the last commits", server);
}

function endOf(last: LastMessage | undefined, loss: WatchfireError | undefined): PreviousEnd {
  if (loss) return "power-loss";
  if (!last) return "new";
  if (last.note.end !== "running") return "clean";
  return last.note.inDoubt ? "power-loss" : "killed";
}

/** Reads the snapshot and the log behind it. Takes away what a process that was killed has left half done. */
async function readAll(
  nats: Nats,
  slot: string,
  log: JetstreamLog,
  { snapshot }: Note,
  disk: MemoryDisk,
  bodies: JetstreamBodies,
): Promise<Pick<TakenSlot, "sizes" | "objects">> {
  const object = snapshot?.object;
  const size = object === undefined ? 0 : await readSnapshot(nats, slot, object, disk);
  const touched = new Map<string, readonly [number, string]>();
  const views = new Set<number>();
  let bytes = 0;
  let messages = 0;
  const objects = await log.entries(snapshot?.sequence ?? 0, (entry) => {
    bytes += entry.length;
    messages++;
    const applied = applyEntry(disk, entry);
    for (const [view, key] of applied.known) touched.set(`${view}/${key}`, [view, key]);
    for (const [view] of applied.views) views.add(Number(view));
  });
  const gone = [...touched.values()].filter(([view, key]) => !disk.views.get(view)?.known.get(key)?.body);
  bodies.drop(gone.map(([view, key]) => bodies.subject(view, key)));
  for (const view of views) if (!disk.views.has(view)) bodies.dropView(view);
  return { sizes: { snapshot: size, log: bytes, messages }, objects };
}
