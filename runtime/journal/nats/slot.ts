import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { type FenceOptions, isOutrun } from "../../lease/lease-record.ts";
import type { KnownBody } from "../batch.ts";
import { notThere, type PreviousEnd } from "../journal.ts";
import { MemoryDisk, MemoryJournal } from "../memory/journal.ts";
import { applyEntry } from "../memory/log-entry.ts";
import { JetstreamBodies, stateOf } from "./bodies.ts";
import type { Nats } from "./connection.ts";
import { natsFault } from "./fault.ts";
import { fenced, JetstreamLog, type LastMessage, type Note, rewound } from "./log.ts";
import { readSnapshot } from "./snapshot.ts";

/** Maximum number of attempts to take a slot. After so many lost races, other processes take it again and again. */
const claims = 5;

/** Keeps a slot's progress outside NATS, so that streams that are gone, empty or restored from a copy are recognised. */
export interface Witness {
  /** Returns the last written mark; "" if there is no mark. */
  read(): string;
  write(mark: string): Promise<void>;
}

export interface SlotOptions extends Partial<FenceOptions> {
  readonly nats: Nats;
  /** The part of the runtime's checkpoints; one store has it open at a time. Letters, digits, `-` and `_`. */
  readonly slot: string;
  readonly witness?: Witness | undefined;
  /** True if the slot must hold checkpoints. A slot without any is then an error, and is left unchanged. Default false. */
  readonly isThere?: boolean;
  readonly clock: Clock;
}

/** A slot that was taken. No other store writes into it from now on. */
export interface TakenSlot {
  readonly log: JetstreamLog;
  readonly disk: MemoryDisk;
  /** The note of each message from now on. */
  readonly note: Note;
  readonly previousEnd: PreviousEnd;
  /** Why acknowledged writes may be missing, if they may. */
  readonly loss: WatchfireError | undefined;
  /** The store that the checkpoints were moved to, if they were. */
  readonly moved: string | undefined;
  /** Sizes of the snapshot and of the log after it, in bytes, and the number of messages in that log. */
  readonly sizes: { readonly snapshot: number; readonly log: number; readonly messages: number };
  /** Objects that hold entries of the log. */
  readonly objects: readonly string[];
}

/**
 * Writes a first message into a slot, and reads everything before it.
 * @throws WatchfireError of the checkpoint section; what the client throws
 */
export async function takeSlot(
  { nats, slot, witness, isThere, clock, raise, holds = () => true, ...options }: SlotOptions,
  bodies: JetstreamBodies,
): Promise<TakenSlot> {
  let { fence } = options;
  for (let tries = 0; tries < claims; tries++) {
    const log = new JetstreamLog(nats, clock, slot);
    // Waits until losses that open slots have found are recorded.
    await nats.checked();
    const streams = await nats.identity();
    await bodies.begin();
    const last = await log.read();
    const before = last?.note;
    if (fence && isOutrun(fence, before?.fence)) {
      const { number } = before.fence;
      fence = await raise?.(number);
      if (!fence) throw fenced(number);
      continue;
    }
    const loss = lossOf(last, witness?.read() ?? "", streams, nats.loneServer);
    const previousEnd = endOf(last, loss);
    if (isThere && previousEnd === "new") throw notThere("NATS holds no checkpoints");
    const moved = before?.end.startsWith("moved:") ? before.end.slice("moved:".length) : undefined;
    const { snapshot } = before ?? {};
    const note: Note = { fence, end: "running", inDoubt: previousEnd === "power-loss", streams, snapshot };
    const first = moved === undefined ? note : { ...note, end: `moved:${moved}` as const };
    if (!holds()) throw fenced(before?.fence?.number);
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

/** Reads a slot without changing it. @throws WatchfireError of the checkpoint section */
export async function readSlot({
  nats,
  slot,
  clock,
}: Pick<SlotOptions, "nats" | "slot" | "clock">): Promise<MemoryDisk> {
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
    throw natsFault(error, "checkpoints could not be read");
  }
}

/** Returns the mark for a witness. */
export const markOf = (sequence: number, streams: string): string => `${sequence} ${streams}`;

/** Returns the reason why acknowledged writes may be missing, if there is one. */
function lossOf(
  last: LastMessage | undefined,
  mark: string,
  streams: string,
  server: string | undefined,
): WatchfireError | undefined {
  const [, known = "0", witnessed = streams] = /^(\d+) (.*)$/.exec(mark) ?? [];
  if (!last && mark !== "") return rewound("it is empty, or was created again", 0);
  if (last && last.sequence < Number(known)) return rewound(`it ends before ${known}`, last.sequence);
  if (witnessed !== streams || (last && last.note.streams !== streams))
    return rewound("one of the streams was created again", streams);
  if (last?.note.end !== "running" || last.note.server === undefined || last.note.server === server) return undefined;
  return rewound("its server, which is not a cluster, was restarted and may have lost the last commits", server);
}

function endOf(last: LastMessage | undefined, loss: WatchfireError | undefined): PreviousEnd {
  if (loss) return "power-loss";
  if (!last) return "new";
  if (last.note.end !== "running") return "clean";
  return last.note.inDoubt ? "power-loss" : "killed";
}

/** Reads the snapshot and the log after it. Deletes stored entries that no message names, which a killed process has left. */
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

/** Size of the cache of bodies, in bytes. Each body is read once. */
const cacheBytes = 1024 * 1024;

/** The contents of a slot at one moment, read without changing it. Its owner may continue meanwhile. */
export class SlotCopy extends MemoryJournal {
  private readonly bodies: JetstreamBodies;

  private constructor(disk: Awaited<ReturnType<typeof readSlot>>, bodies: JetstreamBodies) {
    super(disk);
    this.bodies = bodies;
  }

  /** @throws WatchfireError of the checkpoint section */
  static async read(nats: Nats, slot: string, clock: Clock): Promise<SlotCopy> {
    const disk = await readSlot({ nats, slot, clock });
    return new SlotCopy(disk, new JetstreamBodies(nats, clock, slot, cacheBytes));
  }

  /** Returns the stored body if it still belongs to the state that was read. */
  override async body(view: number, key: string): Promise<KnownBody | undefined> {
    const known = this.state.views.get(view)?.known.get(key);
    if (!known?.body) return undefined;
    const found = await this.bodies.get(this.bodies.subject(view, key));
    if (found?.state === stateOf(known)) return { bytes: found.bytes, isOlder: known.bodyIsOlder === true };
    return found && known.bodyIsOlder ? { bytes: found.bytes, isOlder: true } : undefined;
  }
}
