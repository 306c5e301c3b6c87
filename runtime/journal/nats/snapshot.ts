import { ReadableStream } from "node:stream/web";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MemoryDisk } from "../memory/journal.ts";
import { applyEntry, Changes, encodeEntry } from "../memory/log-entry.ts";
import { frame, framesOf, unpack } from "../memory/packing.ts";
import { type Nats, requestMs } from "./connection.ts";
import { corrupt } from "./fault.ts";
import { readObject } from "./object.ts";

/** Known objects in one part, which take some milliseconds of the event loop. */
const partRows = 2_000;
/** Events in one part. Each has its body. */
const partEvents = 100;

/**
 * Writes the whole memory to the object store, part by part, while commits continue. Each part has its rows as they are when it is
 * written, so a snapshot is only consistent together with the log since its beginning. Returns its size in bytes.
 */
export async function writeSnapshot(nats: Nats, object: string, disk: MemoryDisk): Promise<number> {
  const frames = async function* () {
    for (const part of partsOf(disk)) {
      yield await frame(encodeEntry(disk, part, true));
      await nextTurn();
    }
  };
  const stream = ReadableStream.from(frames()) as Parameters<Nats["objects"]["put"]>[1];
  const { size } = await nats.objects.put({ name: object }, stream, { timeout: requestMs });
  return size;
}

/**
 * Applies the rows of a slot's snapshot. Returns its size in bytes.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT if it cannot be read
 */
export async function readSnapshot(nats: Nats, slot: string, object: string, disk: MemoryDisk): Promise<number> {
  const bytes = await readObject(nats, slot, object);
  try {
    for (const entry of framesOf(bytes)) {
      applyEntry(disk, await unpack(entry));
      await nextTurn();
    }
  } catch (cause) {
    throw corrupt(nats, slot, `its snapshot ${object} cannot be read`, cause);
  }
  return bytes.length;
}

function* partsOf(disk: MemoryDisk): Generator<Changes> {
  // Views and their cursors first, because the other rows refer to them.
  const first = new Changes();
  for (const { id, cursors } of disk.views.values()) {
    first.views.add(id);
    for (const namespace of cursors.keys()) first.cursors.add(id, namespace);
  }
  for (const id of disk.begun.keys()) first.journal.add(id);
  for (const [name, entries] of disk.own) for (const key of entries.keys()) first.own.add(name, key);
  yield first;
  let part = new Changes();
  let rows = 0;
  for (const { id, known } of disk.views.values()) {
    for (const key of known.keys()) {
      part.known.add(id, key);
      if (++rows % partRows > 0) continue;
      yield part;
      part = new Changes();
    }
  }
  for (const [set, keys] of [
    ["spill", disk.spill],
    ["letters", disk.letters],
  ] as const) {
    for (const key of keys.keys()) {
      part[set].add(key);
      if (++rows % partEvents > 0) continue;
      yield part;
      part = new Changes();
    }
  }
  yield part;
}
