import type { Nats } from "./connection.ts";

/** Returns the names of all slots that have data on NATS. @throws what the client throws */
export async function slotsOn({ jsm, logStream, logSubject }: Nats): Promise<string[]> {
  const { state } = await jsm.streams.info(logStream, { subjects_filter: `${logSubject}.*` });
  return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(logSubject.length + 1));
}

/** Deletes all data of the slots for which `over` returns true. @throws what the client throws */
export async function sweepSlots(nats: Nats, over: (slot: string) => boolean): Promise<void> {
  const { jsm, objects, logStream, logSubject, bodyStream, bodySubject } = nats;
  const gone = (await slotsOn(nats)).filter(over);
  for (const { name } of gone.length === 0 ? [] : await objects.list()) {
    if (gone.some((slot) => name.startsWith(`${slot}/`))) await nats.deleteObject(name);
  }
  for (const slot of gone) {
    await jsm.streams.purge(bodyStream, { filter: `${bodySubject}.${slot}.>` });
    // The log last, because slots are found by their log.
    await jsm.streams.purge(logStream, { filter: `${logSubject}.${slot}` });
  }
}
