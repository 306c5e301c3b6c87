import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { z } from "zod";
import type { KubeObject } from "../api/object.ts";
import { ClusterError } from "../cluster-error.ts";
import { encodeJson, parseJson } from "../exact-json.ts";
import type { FileLock } from "./file-lock.ts";
import type { Journal, JournalRecord } from "./store.ts";
import { writing } from "./writing.ts";

/** A cluster's identity, which is kept so that an old kubeconfig works after a restart. */
const identitySchema = z.strictObject({
  ca: z.string(),
  certificate: z.string(),
  key: z.string(),
  adminToken: z.string(),
  /** The key that signs ServiceAccount tokens, PKCS 8 PEM. */
  tokenKey: z.string(),
});
export type Identity = z.infer<typeof identitySchema>;

const headerSchema = z.strictObject({
  watchfireCluster: z.literal(1),
  identity: identitySchema,
  revision: z.number().int(),
});
const recordSchema = z.object({
  revision: z.number().int(),
  collection: z.string(),
  key: z.string(),
  object: z.looseObject({}).optional(),
});

/** The file is rewritten when it holds this many obsolete lines, and more of them than live objects. */
const voidLimit = 20_000;

/** The content of a state file. */
interface Restored {
  identity: Identity;
  revision: number;
  records: JournalRecord[];
}

/** The open state file. */
interface Log {
  readonly descriptor: number;
  /** Bytes of complete lines. The next line begins there, even if a failed write left bytes behind. */
  length: number;
}

/**
 * Stores the cluster's state in a file: a header line, then one JSON line per write. A write is passed to the kernel before it is
 * acknowledged, so killing the process loses no write. A line that a crash or a full disk cut short was never acknowledged, and
 * is dropped.
 */
export class StateFile implements Journal {
  private readonly file: string;
  private readonly identity: Identity;
  private readonly live = new Map<string, JournalRecord>();
  private readonly lock: FileLock;
  private log: Log;
  private voided = 0;
  private revision: number;

  /**
   * Reads the file without changing it; `undefined` if it does not exist. @throws ClusterError STATE_DAMAGED if it is not a valid
   * state file
   */
  static read(file: string): Restored | undefined {
    if (!existsSync(file)) return undefined;
    const bytes = readFileSync(file);
    const lines = bytes
      .subarray(0, bytes.lastIndexOf(0x0a) + 1)
      .toString("utf8")
      .split("\n");
    const head = headerSchema.safeParse(parsed(file, lines[0] ?? "", 1));
    if (!head.success) throw unreadable(file, 1);
    const live = new Map<string, JournalRecord>();
    let { revision } = head.data;
    for (let index = 1; index < lines.length; index++) {
      const line = lines[index];
      if (!line) continue;
      const record = recordSchema.safeParse(parsed(file, line, index + 1));
      if (!record.success) throw unreadable(file, index + 1);
      const { object, ...rest } = record.data;
      revision = Math.max(revision, rest.revision);
      keep(live, object ? { ...rest, object: object as unknown as KubeObject } : rest);
    }
    return { identity: head.data.identity, revision, records: [...live.values()] };
  }

  /** Replaces the file by one with only the live objects. */
  constructor(file: string, lock: FileLock, restored: Restored) {
    this.file = file;
    this.lock = lock;
    this.identity = restored.identity;
    this.revision = restored.revision;
    for (const record of restored.records) keep(this.live, record);
    this.log = this.rewrite();
  }

  /** @throws ClusterError FILE_REFUSED if the line cannot be written as a whole; the file is then unchanged */
  append(record: JournalRecord): void {
    writing(this.file, () => this.write(Buffer.from(`${encodeJson(record)}\n`)));
    this.revision = record.revision;
    if (keep(this.live, record) || !record.object) this.voided++;
    if (this.voided >= voidLimit && this.voided >= this.live.size) this.compact();
  }

  close(): void {
    closeSync(this.log.descriptor);
    this.lock.release();
  }

  private write(line: Buffer): void {
    const { descriptor, length } = this.log;
    try {
      let done = 0;
      while (done < line.length) done += writeSync(descriptor, line, done, line.length - done, length + done);
    } catch (error) {
      ftruncateSync(descriptor, length);
      throw error;
    }
    this.log.length = length + line.length;
  }

  private compact(): void {
    this.voided = 0;
    const { descriptor } = this.log;
    try {
      this.log = this.rewrite();
    } catch {
      return; // The write itself succeeded, and the old file is complete. The next attempt follows after as many obsolete lines.
    }
    closeSync(descriptor);
  }

  private rewrite(): Log {
    const temporary = `${this.file}.tmp`;
    const header = { watchfireCluster: 1, identity: this.identity, revision: this.revision };
    const lines = [header, ...this.live.values()].map((line) => encodeJson(line));
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    const descriptor = openSync(temporary, "w", 0o600);
    try {
      writeFileSync(descriptor, bytes);
      renameSync(temporary, this.file);
    } catch (error) {
      closeSync(descriptor);
      rmSync(temporary, { force: true });
      throw error;
    }
    return { descriptor, length: bytes.length };
  }
}

/** Applies a record to the live ones; true if it made an earlier one obsolete. */
function keep(live: Map<string, JournalRecord>, record: JournalRecord): boolean {
  const id = `${record.collection} ${record.key}`;
  const had = live.delete(id);
  if (record.object) live.set(id, record);
  return had;
}

function parsed(file: string, line: string, number: number): unknown {
  try {
    return parseJson(line);
  } catch (cause) {
    throw unreadable(file, number, cause);
  }
}

function unreadable(file: string, line: number, cause?: unknown): ClusterError {
  return new ClusterError("STATE_DAMAGED", { what: "the line is not one that the cluster wrote", file, line, cause });
}
