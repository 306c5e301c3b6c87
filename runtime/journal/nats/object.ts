import type { Nats } from "./connection.ts";
import { corrupt } from "./fault.ts";

/** An object of a slot: its bytes, or why it cannot be read, such as `is gone`. */
type StoredObject =
  | { readonly bytes: Buffer; readonly metadata: Readonly<Record<string, string>> }
  | { readonly why: string; readonly cause?: unknown };

/** Reads an object. The client alone would wait for ever for a part that is gone. @throws what the client throws */
export async function findObject(nats: Nats, name: string): Promise<StoredObject> {
  const info = await nats.objects.info(name);
  if (!info || info.deleted) return { why: "is gone" };
  const parts = await nats.partsOf(info.nuid);
  if (parts < info.chunks) return { why: `has ${parts} of ${info.chunks} parts` };
  try {
    const bytes = await nats.objects.getBlob(name);
    // Whoever has the slot may have taken it away meanwhile: it is not empty.
    if (!bytes) return { why: "is gone" };
    return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), metadata: info.metadata ?? {} };
  } catch (cause) {
    // The client has no code for it.
    if (!(cause instanceof Error && /digests do not match/.test(cause.message))) throw cause;
    return { why: "is not what was written", cause };
  }
}

/**
 * The bytes of an object that a slot's positions stand on.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT where it is gone, or not whole; what the client throws
 */
export async function readObject(nats: Nats, slot: string, name: string): Promise<Buffer> {
  const found = await findObject(nats, name);
  if ("why" in found) throw corrupt(nats, slot, `its object ${name} ${found.why}`, found.cause);
  return found.bytes;
}
