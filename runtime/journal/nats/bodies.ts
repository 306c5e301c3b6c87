import { hash } from "node:crypto";
import { type Clock, pause } from "../../base/clock.ts";
import type { WatchfireError } from "../../base/errors.ts";
import type { KnownIdentity } from "../batch.ts";
import { ackMs, type Nats, requestMs } from "./connection.ts";
import { isStatus, isUnheard, natsFault, status } from "./fault.ts";
import { rewound } from "./log.ts";
import { findObject } from "./object.ts";

/** The header with the object's state that a body belongs to. */
const stateHeader = "Watchfire-State";
/** The header of a body in the object store: the name of the stored object. */
const objectHeader = "Watchfire-Object";
const headerBytes = 1024;
/** Maximum number of concurrent requests. */
const together = 64;
const againMs = 500;

/** A body, and the state of the object that it belongs to. */
export interface TaggedBody {
  readonly bytes: Buffer;
  readonly state: string;
}

/** Returns a string that identifies one state of an object and the form that it is written in. */
export const stateOf = ({
  uid,
  resourceVersion,
  form,
}: Pick<KnownIdentity, "uid" | "resourceVersion" | "form">): string =>
  `${uid}/${resourceVersion}${form === undefined ? "" : `/${form}`}`;

/**
 * The last bodies of a slot's objects. Each object has a subject, of which the stream keeps the last message. The newest bodies
 * are also cached in memory, because filters read the previous body for each event.
 */
export class JetstreamBodies {
  private readonly nats: Nats;
  private readonly clock: Clock;
  private readonly slot: string;
  private readonly cacheBytes: number;
  /** By subject, the most recently used last. */
  private readonly cache = new Map<string, TaggedBody>();
  private cached = 0;
  /** Subjects whose body is to be deleted: `unwanted` in the next round, `going` in the round under way. */
  private unwanted = new Set<string>();
  private going: ReadonlySet<string> = new Set();
  private dropping: Promise<void> | undefined;
  /** Sequence of a message in the body stream that is certainly older than anything that a later owner of the slot writes. */
  private reached = 0;
  /** By a subject's token, the names of objects that hold bodies of it. Each owner of the slot uses names with its session. */
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

  /** Records which bodies are in the object store. `objects`: the store's list of names. */
  learn(objects: readonly string[]): void {
    const prefix = `${this.slot}/body/`;
    for (const name of objects) {
      const [token = ""] = name.startsWith(prefix) ? name.slice(prefix.length).split("/") : [];
      if (token !== "") this.note(token, name);
    }
  }

  /**
   * Records the stream's last sequence. Must be called before the slot is taken, because later messages may be another owner's.
   */
  async begin(): Promise<void> {
    this.reached = (await this.nats.jsm.streams.info(this.nats.bodyStream)).state.last_seq;
  }

  /** Puts the body into the cache. */
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

  /** Removes the body from the cache. */
  forget(subject: string): void {
    this.cached -= this.cache.get(subject)?.bytes.length ?? 0;
    this.cache.delete(subject);
  }

  /** Resolves once all bodies are stored. @throws WatchfireError WF_CHECKPOINT_REWOUND; the reason given to `end` */
  async put(bodies: ReadonlyMap<string, TaggedBody>, failed: (error: WatchfireError) => void): Promise<void> {
    for (const subject of bodies.keys()) this.unwanted.delete(subject);
    // A deletion under way could delete the body that is written now.
    if ([...bodies.keys()].some((subject) => this.going.has(subject))) await this.dropping;
    await eachTogether(bodies, ([subject, body]) =>
      this.untilDone("a body was not acknowledged", failed, () => this.putOne(subject, body)),
    );
  }

  /** Returns the stored body. Waits while NATS is away. */
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

  /** Deletes bodies in the background. */
  drop(subjects: Iterable<string>): void {
    for (const subject of subjects) this.unwanted.add(subject);
    this.sweep();
  }

  /** Deletes all bodies of a view in the background. */
  dropView(view: number): void {
    const prefix = `${this.nats.bodySubject}.${this.slot}.${view}.`;
    for (const subject of this.cache.keys()) if (subject.startsWith(prefix)) this.forget(subject);
    for (const token of this.large.keys()) {
      if (token.startsWith(`${view}.`)) this.unwanted.add(`${this.nats.bodySubject}.${this.slot}.${token}`);
    }
    this.unwanted.add(`${prefix}>`);
    this.sweep();
  }

  /** Deletes all bodies of the slot at once. @throws what the client throws */
  async clear(): Promise<void> {
    await this.swept();
    this.cache.clear();
    this.cached = 0;
    const { jsm, bodyStream, bodySubject } = this.nats;
    await jsm.streams.purge(bodyStream, { filter: `${bodySubject}.${this.slot}.>` });
    for (const token of this.large.keys()) await this.deleteLarge(token);
  }

  /** Resolves once everything dropped so far is deleted. */
  async swept(): Promise<void> {
    while (this.dropping) await this.dropping;
  }

  /** Stops all waiting. */
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
      // Only at the end. The next process to open the slot deletes them.
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
    // A damaged body counts as missing, so that it holds no event back.
    return "why" in object ? undefined : { bytes: object.bytes, state: object.metadata.state ?? "" };
  }

  private async dropOne(subject: string): Promise<void> {
    const { jsm, bodyStream } = this.nats;
    // A process that wakes up late must not delete what its successor wrote.
    await jsm.streams.purge(bodyStream, { filter: subject, seq: this.reached + 1 });
    await this.deleteLarge(this.tokenOf(subject));
  }

  private note(token: string, object: string): void {
    const names = this.large.get(token) ?? new Set();
    this.large.set(token, names.add(object));
  }

  /**
   * Deletes all objects of a subject but `except`. Names stay recorded until the deletion succeeds. Objects of a later owner are
   * not recorded, so they are not deleted.
   */
  private async deleteLarge(token: string, except?: string): Promise<void> {
    const names = this.large.get(token) ?? new Set();
    for (const name of names) {
      if (name === except) continue;
      await this.nats.deleteObject(name);
      names.delete(name);
    }
    if (names.size === 0) this.large.delete(token);
  }

  /** Returns a subject's last parts: the view and the object. */
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

  /** @throws WatchfireError WF_CHECKPOINT_REWOUND if the stream is gone */
  private async assertStream(): Promise<void> {
    const { jsm, bodyStream } = this.nats;
    await jsm.streams.info(bodyStream).catch((error: unknown) => {
      if (isStatus(error, status.streamNotFound)) throw rewound("that of the last bodies is gone", bodyStream);
    });
  }
}

/** Runs `work` for all items, a limited number at a time. */
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
