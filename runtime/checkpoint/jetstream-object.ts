import type { Nats } from "./jetstream-connection.ts";
import { corrupt } from "./jetstream-fault.ts";

/**
 * The bytes of one of a slot's objects.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT where it is gone, or not whole; what the client throws
 */
export async function readObject(nats: Nats, slot: string, name: string): Promise<Buffer> {
  const gone = () => corrupt(nats, slot, `its object ${name} is gone`);
  const info = await nats.objects.info(name);
  if (!info || info.deleted) throw gone();
  // The client would wait for the last part of it for ever.
  const parts = await nats.partsOf(info.nuid);
  if (parts < info.chunks) throw corrupt(nats, slot, `its object ${name} has ${parts} of ${info.chunks} parts`);
  const bytes = await nats.objects.getBlob(name).catch((cause: unknown) => {
    // The client has no code for it.
    if (!(cause instanceof Error && /digests do not match/.test(cause.message))) throw cause;
    throw corrupt(nats, slot, `its object ${name} is not what was written`, cause);
  });
  // Whoever has the slot may have taken it away meanwhile: it is not empty.
  if (!bytes) throw gone();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
