import type { Nats } from "./connection.ts";
import { corrupt } from "./fault.ts";

/** An object of a slot: its bytes, or the reason why it cannot be read, such as `is gone`. */
type StoredObject =
  | { readonly bytes: Buffer; readonly metadata: Readonly<Record<string, string>> }
  | { readonly why: string; readonly cause?: unknown };

/**
 * Reads an object. Checks its parts first, because the client waits for a missing part for ever.
 * @throws what the client throws
 */
export async function findObject(nats: Nats, name: string): Promise<StoredObject> {
  const info = await nats.objects.info(name);
  if (!info || info.deleted) return { why: "is gone" };
  const parts = await nats.partsOf(info.nuid);
  if (parts < info.chunks) return { why: `has ${parts} of ${info.chunks} parts` };
  try {
    const bytes = await nats.objects.getBlob(name);
    // Not an empty object: the slot's owner may have deleted it meanwhile.
    if (!bytes) return { why: "is gone" };
    return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), metadata: info.metadata ?? {} };
  } catch (cause) {
    // The client has no error code for this.
    if (!(cause instanceof Error && /digests do not match/.test(cause.message))) throw cause;
    return { why: "is not what was written", cause };
  }
}

/**
 * Reads an object that a slot's checkpoints depend on.
 * @throws WatchfireError WF_CHECKPOINT_CORRUPT if it is missing or incomplete; what the client throws
 */
export async function readObject(nats: Nats, slot: string, name: string): Promise<Buffer> {
  const found = await findObject(nats, name);
  if ("why" in found) throw corrupt(nats, slot, `its object ${name} ${found.why}`, found.cause);
  return found.bytes;
}
