import { hash } from "node:crypto";
import { type Clock, pause } from "../../base/clock.ts";
import type { WatchfireError } from "../../base/errors.ts";
import type { KnownIdentity } from "../batch.ts";
import { ackMs, type Nats, requestMs } from "./connection.ts";
import { isStatus, isUnheard, natsFault, status } from "./fault.ts";
import { rewound } from "./log.ts";
import { findObject } from "./object.ts";

/** The header that says of which state of its object a body is. */
const stateHeader = "Watchfire-State";
/** The header of a body that is in the object store: the object's name. */
const objectHeader = "Watchfire-Object";
const headerBytes = 1024;
/** Requests that are under way at once. */
const together = 64;
const againMs = 500;

/** A body, and the object's state that it is of. */
export interface TaggedBody {
  readonly bytes: Buffer;
  readonly state: string;
}

/** Tells one state of an object, and the form that it is written in, from all others. */
export const stateOf = ({
  uid,
  resourceVersion,
  form,
}: Pick<KnownIdentity, "uid" | "resourceVersion" | "form">): string =>
  `${uid}/${resourceVersion}${form === undefined ? "" : `/${form}`}`;

/**
 * The last bodies of a slot's objects: a subject for each object, of which the stream keeps the last message. The newest
 * are in memory besides, since filters read the body before for each event.
 */
export class JetstreamBodies {
  private readonly nats: Nats;
  private readonly clock: Clock;
  private readonly slot: string;
  private readonly cacheBytes: number;
  /** By subject, the one that was used last at the end. */
  private readonly cache = new Map<string, TaggedBody>();
  private cached = 0;
  /** Subjects whose body is to go, in the next round and in the one that is under way. */
  private unwanted = new Set<string>();
  private going: ReadonlySet<string> = new Set();
  private dropping: Promise<void> | undefined;
  /** The newest message of the bodies' stream that is surely older than all that a later owner of the slot writes. */
  private reached = 0;
  /** By a subject's token, the objects that hold bodies of it. Each owner of the slot has names of its own. */
  private readonly large = new Map<string, Set<string>>();
  private readonly session = crypto.randomUUID();
  private readonly ending = new AbortController();

  constructor(nats: Nats, clock: Clock, slot: string, cacheBytes: number) {
    this.nats = nats;
    this.clock = clock;
    this.slot = slot;
    this.cacheBytes = cacheBytes;
  }

  subject(view: number, key: string): string {
    return `${this.nats.bodySubject}.${this.slot}.${view}.${hash("sha256", key, "base64url")}`;
  }

  /** Learns which bodies are in the object store, from its list. */
  learn(objects: readonly string[]): void {
    const prefix = `${this.slot}/body/`;
    for (const name of objects) {
      const [token = ""] = name.startsWith(prefix) ? name.slice(prefix.length).split("/") : [];
      if (token !== "") this.note(token, name);
    }
  }

  /** Learns how far the stream is. To be asked before the slot is taken: what comes later may be another's. */
  async begin(): Promise<void> {
    this.reached = (await this.nats.jsm.streams.info(this.nats.bodyStream)).state.last_seq;
  }

  /** The body is read as this one from now on. */
  remember(subject: string, body: TaggedBody): void {
    this.forget(subject);
    this.cache.set(subject, body);
    this.cached += body.bytes.length;
    for (const [oldest, { bytes }] of this.cache) {
      if (this.cached <= this.cacheBytes) break;
      this.cache.delete(oldest);
      this.cached -= bytes.length;
    }
  }

  /** It is not read any more. */
  forget(subject: string): void {
    this.cached -= this.cache.get(subject)?.bytes.length ?? 0;
    this.cache.delete(subject);
  }

  /** Resolves when they are on record. @throws WatchfireError WF_CHECKPOINT_REWOUND; the reason given to `end` */
  async put(bodies: ReadonlyMap<string, TaggedBody>, failed: (error: WatchfireError) => void): Promise<void> {
    for (const subject of bodies.keys()) this.unwanted.delete(subject);
    // What it takes away might be what comes now.
    if ([...bodies.keys()].some((subject) => this.going.has(subject))) await this.dropping;
    await eachTogether(bodies, ([subject, body]) =>
      this.untilDone("a body was not acknowledged", failed, () => this.putOne(subject, body)),
    );
  }

  /** The body on record. Waits for NATS while that is away. */
  async get(subject: string): Promise<TaggedBody | undefined> {
    const cached = this.cache.get(subject);
    if (cached) {
      this.remember(subject, cached);
      return cached;
    }
    const found = await this.untilDone(
      "a body could not be read",
      () => {},
      () => this.getOne(subject),
    );
    if (found && !this.cache.has(subject)) this.remember(subject, found);
    return this.cache.get(subject) ?? found;
  }

  /** They are needed no more, and go when there is time. */
  drop(subjects: Iterable<string>): void {
    for (const subject of subjects) this.unwanted.add(subject);
    this.sweep();
  }

  /** All bodies of a view go. */
  dropView(view: number): void {
    const prefix = `${this.nats.bodySubject}.${this.slot}.${view}.`;
    for (const subject of this.cache.keys()) if (subject.startsWith(prefix)) this.forget(subject);
    for (const token of this.large.keys()) {
      if (token.startsWith(`${view}.`)) this.unwanted.add(`${this.nats.bodySubject}.${this.slot}.${token}`);
    }
    this.unwanted.add(`${prefix}>`);
    this.sweep();
  }

  /** All bodies of the slot go at once. @throws what the client throws */
  async clear(): Promise<void> {
    await this.swept();
    this.cache.clear();
    this.cached = 0;
    const { jsm, bodyStream, bodySubject } = this.nats;
    await jsm.streams.purge(bodyStream, { filter: `${bodySubject}.${this.slot}.>` });
    for (const token of this.large.keys()) await this.deleteLarge(token);
  }

  /** Resolves when all that was dropped so far is gone. */
  async swept(): Promise<void> {
    while (this.dropping) await this.dropping;
  }

  /** Waits for nothing any more. */
  end(reason: WatchfireError): void {
    this.ending.abort(reason);
  }

  private sweep(): void {
    if (this.dropping || this.unwanted.size === 0) return;
    const round = this.unwanted;
    this.unwanted = new Set();
    this.going = round;
    this.dropping = eachTogether(round, (subject) =>
      this.untilDone(
        "a body could not be dropped",
        () => {},
        () => this.dropOne(subject),
      ),
    )
      // At the end; the next to open takes them away.
      .catch(() => undefined)
      .finally(() => {
        this.dropping = undefined;
        this.going = new Set();
        if (!this.ending.signal.aborted) this.sweep();
      });
  }

  private async putOne(subject: string, { bytes, state }: TaggedBody): Promise<void> {
    const token = this.tokenOf(subject);
    const isLarge = bytes.length > this.nats.maxPayload - headerBytes;
    const object = `${this.slot}/body/${token}/${this.session}`;
    const { objects, js } = this.nats;
    if (isLarge) {
      this.note(token, object);
      await objects.putBlob({ name: object, metadata: { state } }, bytes, { timeout: requestMs });
    }
    const headers = this.nats.headers({ [stateHeader]: state, ...(isLarge && { [objectHeader]: object }) });
    const { seq } = await js.publish(subject, isLarge ? undefined : bytes, { headers, timeout: ackMs });
    this.reached = Math.max(this.reached, seq);
    await this.deleteLarge(token, isLarge ? object : undefined);
  }

  private async getOne(subject: string): Promise<TaggedBody | undefined> {
    const { jsm, bodyStream } = this.nats;
    const found = await jsm.streams.getMessage(bodyStream, { last_by_subj: subject }).catch((error: unknown) => {
      if (isStatus(error, status.messageNotFound)) return null;
      throw error;
    });
    if (!found) return undefined;
    const name = found.header.get(objectHeader);
    if (name === "") return { bytes: Buffer.from(found.data), state: found.header.get(stateHeader) };
    const object = await findObject(this.nats, name);
    // One that is damaged counts as gone, which keeps no event back.
    return "why" in object ? undefined : { bytes: object.bytes, state: object.metadata.state ?? "" };
  }

  private async dropOne(subject: string): Promise<void> {
    const { jsm, bodyStream } = this.nats;
    // A process that wakes up late has no say in what its successor wrote.
    await jsm.streams.purge(bodyStream, { filter: subject, seq: this.reached + 1 });
    await this.deleteLarge(this.tokenOf(subject));
  }

  private note(token: string, object: string): void {
    const names = this.large.get(token) ?? new Set();
    this.large.set(token, names.add(object));
  }

  /** All but `except`. Each is known until it is gone, however often that is tried. What a later owner wrote is not known. */
  private async deleteLarge(token: string, except?: string): Promise<void> {
    const names = this.large.get(token) ?? new Set();
    for (const name of names) {
      if (name === except) continue;
      await this.nats.deleteObject(name);
      names.delete(name);
    }
    if (names.size === 0) this.large.delete(token);
  }

  /** A subject's last parts: the view and the object. */
  private tokenOf(subject: string): string {
    return subject.slice(this.nats.bodySubject.length + this.slot.length + 2);
  }

  private async untilDone<T>(
    what: string,
    failed: (error: WatchfireError) => void,
    work: () => Promise<T>,
  ): Promise<T> {
    for (;;) {
      this.ending.signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (isUnheard(error) || isStatus(error, status.streamNotFound)) await this.assertStream();
        failed(natsFault(error, what));
      }
      await pause(this.clock, againMs, this.ending.signal);
    }
  }

  /** @throws WatchfireError WF_CHECKPOINT_REWOUND where the stream is gone */
  private async assertStream(): Promise<void> {
    const { jsm, bodyStream } = this.nats;
    await jsm.streams.info(bodyStream).catch((error: unknown) => {
      if (isStatus(error, status.streamNotFound)) throw rewound("that of the last bodies is gone", bodyStream);
    });
  }
}

/** Does the work of all, some at once. */
async function eachTogether<T>(
  all: Iterable<T> & { readonly size: number },
  work: (each: T) => Promise<void>,
): Promise<void> {
  const rest = all[Symbol.iterator]();
  const next = async (): Promise<void> => {
    for (let each = rest.next(); !each.done; each = rest.next()) await work(each.value);
  };
  await Promise.all(Array.from({ length: Math.min(together, all.size) }, next));
}
