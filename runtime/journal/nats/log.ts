import { z } from "zod";
import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { type Fence, fenceSchema } from "../../lease/lease-record.ts";
import { pack, unpack } from "../memory/packing.ts";
import { ackMs, type Nats, requestMs } from "./connection.ts";
import { corrupt, isStatus, isUnheard, natsFault, status } from "./fault.ts";
import { readObject } from "./object.ts";

/** Version of the format, raised with every change. A higher version is refused. */
const version = 1;
/** The header with everything that must be known about a message before it is read. */
const headerName = "Watchfire";
/** Entries larger than this are compressed. The 64 rows of a usual commit are smaller. */
const plainBytes = 32 * 1024;
/** Bytes of a message reserved for its headers. */
const headerBytes = 4 * 1024;
/** Pause between two attempts to write, in milliseconds. */
const againMs = 500;
/**
 * Options of pull requests, in milliseconds. A request is repeated after two missing heartbeats. With the client's defaults, 30 s
 * and 15 s, a request dropped by a busy cluster delays the opening of a slot by half a minute.
 */
const pulling = { expires: 5_000, idle_heartbeat: 1_000 };

/**
 * How long the opening of a slot waits for the next message, in milliseconds. The client repeats its request several times
 * meanwhile. After that the slot's opening starts over.
 */
const silenceMs = 15_000;

const noteSchema = z.object({
  version: z.number(),
  /** The writer's session, and the message's number within that session. */
  session: z.string(),
  number: z.number(),
  /** Sequence of the slot's previous message. Absent in messages of older runtimes. */
  after: z.number().optional(),
  fence: fenceSchema.optional(),
  /** `moved:…` if the checkpoints were moved to another store. */
  end: z.string(),
  /** True if acknowledged writes may have been lost and no clean end has followed. */
  inDoubt: z.boolean(),
  /** The server's id, if it is not in a cluster. */
  server: z.string().optional(),
  /** Identity of the streams, which distinguishes them from others of the same name. */
  streams: z.string(),
  /** The object with everything up to `sequence`. No `object`: nothing up to `sequence` is valid any more. */
  snapshot: z.object({ object: z.string().optional(), sequence: z.number() }).optional(),
  /** The object with the entry, if that was too large for a message. */
  object: z.string().optional(),
  packed: z.boolean(),
});

/** The contents of each message besides its rows. */
export interface Note {
  readonly fence?: Fence | undefined;
  readonly end: "running" | "clean" | `moved:${string}`;
  readonly inDoubt: boolean;
  readonly streams: string;
  readonly snapshot?: { readonly object?: string | undefined; readonly sequence: number } | undefined;
}

type FoundNote = z.infer<typeof noteSchema>;

/** The last message of a slot. */
export interface LastMessage {
  readonly sequence: number;
  readonly note: FoundNote;
}

/**
 * The messages of one slot, each a commit with all its rows. The server accepts a message only directly after the one that its
 * writer names as the last. So a writer is refused once another has written.
 */
export class JetstreamLog {
  private readonly nats: Nats;
  private readonly clock: Clock;
  private readonly slot: string;
  private readonly subject: string;
  private readonly session = crypto.randomUUID();
  private number = 0;
  private last = 0;
  private readonly ending = new AbortController();

  constructor(nats: Nats, clock: Clock, slot: string) {
    this.nats = nats;
    this.clock = clock;
    this.slot = slot;
    this.subject = `${nats.logSubject}.${slot}`;
  }

  /** Sequence of the last known message. */
  get sequence(): number {
    return this.last;
  }

  /** Reads the last message from the stream's leader. @throws WatchfireError */
  async read(): Promise<LastMessage | undefined> {
    const found = await this.nats.jsm.streams
      .getMessage(this.nats.logStream, { last_by_subj: this.subject })
      .catch((error: unknown) => {
        if (isStatus(error, status.messageNotFound)) return null;
        throw error;
      });
    return found ? { sequence: found.seq, note: this.noteOf(found.header.get(headerName)) } : undefined;
  }

  /** Writes a first message after `after`. Returns false if another replica was faster. */
  async claim(note: Note, after: number): Promise<boolean> {
    this.last = after;
    try {
      await this.append(note, Buffer.alloc(0), (fault) => {
        throw fault;
      });
      return true;
    } catch (error) {
      if (error instanceof WatchfireError && error.code === "WF_CHECKPOINT_FENCED") return false;
      throw error;
    }
  }

  /**
   * Visits every entry after a sequence, up to `to`. Default: up to the last known message. Returns the names of objects that
   * hold some of the entries.
   * @throws WatchfireError WF_CHECKPOINT_CORRUPT; WF_CHECKPOINT_NATS_AWAY if the next message does not arrive
   */
  async entries(after: number, visit: (entry: Buffer) => void, to = this.last): Promise<string[]> {
    const objects: string[] = [];
    const consumer = await this.nats.js.consumers.get(this.nats.logStream, {
      filter_subjects: this.subject,
      deliver_policy: "by_start_sequence",
      opt_start_seq: after + 1,
    });
    let before = after;
    const messages = await consumer.consume(pulling);
    const listen = () => this.clock.after(silenceMs, () => messages.stop(silence(this.subject, before)));
    let patience = listen();
    try {
      for await (const message of messages) {
        patience.cancel();
        if (message.seq <= to) {
          const note = this.noteOf(message.headers?.get(headerName) ?? "");
          if (note.after !== undefined && note.after !== before)
            throw this.corrupt(`messages between ${before} and ${message.seq} are gone`);
          before = message.seq;
          const bytes = note.object === undefined ? Buffer.from(message.data) : await this.object(note.object);
          if (note.object !== undefined) objects.push(note.object);
          await this.visitEntry(bytes, note.packed, visit);
        }
        if (message.seq >= to) break;
        patience = listen();
      }
    } finally {
      patience.cancel();
      void consumer.delete().catch(() => false);
    }
    // The messages there now belong to another owner.
    if (before < to) throw silence(this.subject, before);
    return objects;
  }

  /**
   * Writes an entry, and resolves once it is stored, however long that takes. `failed` is called with the reason of each delay.
   * Returns the size of the message in bytes, and the object with the entry if that was too large for a message.
   * @throws WatchfireError WF_CHECKPOINT_FENCED or WF_CHECKPOINT_REWOUND; the reason given to `end`
   */
  async append(
    note: Note,
    entry: Buffer,
    failed: (error: WatchfireError) => void,
  ): Promise<{ readonly bytes: number; readonly object: string | undefined }> {
    const number = ++this.number;
    const packed = entry.length > plainBytes;
    const payload = packed ? await pack(entry) : entry;
    const isLarge = payload.length > this.nats.maxPayload - headerBytes;
    const object = isLarge ? `${this.slot}/entry/${this.session}-${number}` : undefined;
    const { session } = this;
    const said = { version, session, number, after: this.last, ...note, server: this.nats.loneServer, object, packed };
    const headers = this.nats.headers({ [headerName]: JSON.stringify(said) });
    for (;;) {
      this.ending.signal.throwIfAborted();
      try {
        if (object !== undefined) await this.nats.objects.putBlob({ name: object }, payload, { timeout: requestMs });
        const { seq } = await this.nats.js.publish(this.subject, isLarge ? undefined : payload, {
          headers,
          timeout: ackMs,
          expect: { lastSubjectSequence: this.last },
        });
        this.last = seq;
        return { bytes: payload.length, object };
      } catch (error) {
        const fault = await this.judge(error, number);
        if (!fault) return { bytes: payload.length, object };
        if (fault.code === "WF_CHECKPOINT_FENCED" || fault.code === "WF_CHECKPOINT_REWOUND") throw fault;
        failed(fault);
      }
      await pause(this.clock, againMs, this.ending.signal);
    }
  }

  /**
   * Checks that the last acknowledged message still exists. Returns `undefined` if it does, otherwise the error. Retries until
   * NATS answers, and asks twice before it reports a loss.
   * @throws the reason given to `end`
   */
  async loss(): Promise<WatchfireError | undefined> {
    for (let doubted = false; ; await pause(this.clock, againMs, this.ending.signal)) {
      const { last } = this;
      try {
        const found = (await this.read())?.sequence ?? 0;
        if (found >= last) return undefined;
        if (doubted) return rewound(`it ends before ${last}`, found);
        doubted = true;
      } catch (error) {
        if (isStatus(error, status.streamNotFound)) return rewound("it is gone", this.nats.logStream);
      }
    }
  }

  /** Deletes messages that a snapshot contains. */
  async trim(upTo: number): Promise<void> {
    await this.nats.jsm.streams.purge(this.nats.logStream, { filter: this.subject, seq: upTo + 1 });
  }

  /** Stops all writes. */
  end(reason: WatchfireError): void {
    this.ending.abort(reason);
  }

  /**
   * Decides the consequence of a failed write. Returns `undefined` if the message was stored and only its acknowledgement was
   * lost.
   */
  private async judge(error: unknown, number: number): Promise<WatchfireError | undefined> {
    const what = "the commit was not acknowledged";
    if (!isStatus(error, status.wrongLastSequence, status.wrongLastSequenceConstant) && !isUnheard(error))
      return natsFault(error, what);
    try {
      const found = await this.read();
      if (found && found.sequence > this.last) {
        const { session, fence } = found.note;
        if (session !== this.session) return fenced(fence?.number);
        if (found.note.number !== number) return rewound("it was changed by hand", found.sequence);
        this.last = found.sequence;
        return undefined;
      }
      if ((found?.sequence ?? 0) < this.last) return rewound(`it ends before ${this.last}`, found?.sequence ?? 0);
      return natsFault(error, what);
    } catch (cause) {
      if (isStatus(cause, status.streamNotFound)) return rewound("it is gone", this.nats.logStream);
      return natsFault(cause, what);
    }
  }

  private async visitEntry(bytes: Buffer, packed: boolean, visit: (entry: Buffer) => void): Promise<void> {
    if (bytes.length === 0) return;
    try {
      visit(packed ? await unpack(bytes) : bytes);
    } catch (cause) {
      throw this.corrupt("the rows of a message cannot be read", cause);
    }
  }

  /** Returns the bytes of an object. */
  private object(name: string): Promise<Buffer> {
    return readObject(this.nats, this.slot, name);
  }

  private noteOf(text: string): FoundNote {
    let note: FoundNote;
    try {
      note = noteSchema.parse(JSON.parse(text));
    } catch (cause) {
      throw this.corrupt("a message has no header of ours", cause);
    }
    if (note.version > version) {
      const what = `the subject ${this.subject} has a format newer than ${version}`;
      throw new WatchfireError("WF_CHECKPOINT_NEWER_SCHEMA", { what, actual: note.version });
    }
    return note;
  }

  private corrupt(why: string, cause?: unknown): WatchfireError {
    return corrupt(this.nats, this.slot, why, cause);
  }
}

const silence = (subject: string, after: number): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_NATS_AWAY", {
    what: `no message of ${subject} came after ${after}`,
    actual: after,
  });

export const fenced = (by: number | undefined): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_FENCED", { what: "another replica has opened its subject on NATS", actual: by });

export const rewound = (what: string, actual: unknown): WatchfireError =>
  new WatchfireError("WF_CHECKPOINT_REWOUND", { what: `of the stream of checkpoints: ${what}`, actual });
