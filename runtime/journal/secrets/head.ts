import { createHash } from "node:crypto";
import { z } from "zod";
import { WatchfireError } from "../../base/errors.ts";
import { type Fence, fenceSchema } from "../../lease/lease-record.ts";
import { MemoryDisk } from "../memory/journal.ts";
import { applyEntry } from "../memory/log-entry.ts";
import { framesOf, unpack } from "../memory/packing.ts";
import type { Secret } from "./secrets.ts";

/** Version of the format, raised with every change. A higher version is refused. */
const version = 1;

const headSchema = z.object({
  version: z.number(),
  fence: fenceSchema,
  /** `moved:…` if the checkpoints were moved to another store. */
  end: z.string(),
  snapshot: z.object({ slots: z.array(z.int().min(1)), sha256: z.string() }).nullable(),
});

/** The slots of a snapshot, and its digest. */
export type Snapshot = NonNullable<z.infer<typeof headSchema>["snapshot"]>;

/** The contents of the first Secret: the owner's fence, how the last run ended, the valid snapshot, and the log after it. */
export interface Head {
  readonly fence: Fence;
  readonly end: "running" | "clean" | `moved:${string}`;
  readonly snapshot: Snapshot | undefined;
  /** Concatenated entries, each after its length. */
  readonly log: Buffer;
}

export const dataOf = ({ fence, end, snapshot, log }: Head): Record<string, Buffer> => ({
  head: Buffer.from(JSON.stringify({ version, fence, end, snapshot: snapshot ?? null })),
  log,
});

/** Returns `undefined` if nothing was ever written. @throws WatchfireError if the head cannot be read */
export function readHead(secret: Secret, name: string): Head | undefined {
  const text = secret.data.get("head");
  if (!text) {
    if (secret.data.size === 0) return undefined;
    throw corrupt(name, "it holds something else");
  }
  let head: z.infer<typeof headSchema>;
  try {
    head = headSchema.parse(JSON.parse(text.toString("utf8")));
  } catch (cause) {
    throw corrupt(name, "its first record cannot be read", cause);
  }
  if (head.version > version) {
    const what = `the Secret ${name} has a format newer than ${version}`;
    throw new WatchfireError("WF_CHECKPOINT_NEWER_SCHEMA", { what, actual: head.version });
  }
  const { fence, end, snapshot } = head;
  if (end !== "running" && end !== "clean" && !end.startsWith("moved:")) throw corrupt(name, "its end is unknown");
  return {
    fence,
    end: end as Head["end"],
    snapshot: snapshot ?? undefined,
    log: secret.data.get("log") ?? Buffer.alloc(0),
  };
}

/** Reads the state that a head refers to. `slot` reads the bytes of one of the other Secrets. */
export async function readDisk(
  { snapshot, log }: Head,
  name: string,
  slot: (index: number) => Promise<Buffer>,
): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  try {
    if (snapshot) {
      const bytes = Buffer.concat(await Promise.all(snapshot.slots.map(slot)));
      if (digest(bytes) !== snapshot.sha256) throw corrupt(name, "its snapshot is not the one that it names");
      applyEntry(disk, await unpack(bytes));
    }
    for (const entry of framesOf(log)) applyEntry(disk, await unpack(entry));
  } catch (cause) {
    if (cause instanceof WatchfireError) throw cause;
    throw corrupt(name, "its content cannot be read", cause);
  }
  return disk;
}

export const digest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

const corrupt = (name: string, why: string, cause?: unknown): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_CORRUPT", {
    what: `the Secret ${name} cannot be used: ${why}`,
    hint: "restore the Secrets from a copy, or empty them to begin again: every existing object is then new to the functions",
    cause,
  });
