import type { Clock, Timer } from "../../base/clock.ts";
import type { ResourceVersion } from "../../base/resource-version.ts";
import { parseStatus, readApiError, readLimited } from "../../kube/api-error.ts";
import type { KubeResponse, KubeTransport } from "../../kube/transport.ts";
import type { ObjectIdentity } from "../fanout/source-spec.ts";
import type { Change } from "../scan/change.ts";
import { EnvelopeScanner } from "../scan/object-scan.ts";
import { openBrace, skipSpace } from "../scan/text-scan.ts";
import { TimeSlice, ValueReader } from "../scan/value-reader.ts";
import { type Ending, endingOf } from "./failure.ts";

/** Time limit for the body of a refusal, in milliseconds; its status line is enough. */
const refusalMs = 10_000;
/**
 * How long an answer without a JSON Content-Type may be silent before it counts as a watch, in milliseconds. The body of an
 * HTML page arrives at once.
 */
const pageMs = 1000;

/** The request of a list or a watch. */
export interface InformerRequest {
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly identity: ObjectIdentity;
}

interface SessionOptions extends InformerRequest {
  readonly timeoutMs: number;
  /** Returns the silence allowed after so many events, in milliseconds. */
  idleMs(events: number): number;
  /** Whether white space between events, which proxies send to keep a connection open, ends a silence. */
  spaceEndsSilence(): boolean;
  /** Returns a promise while subscribers are congested. It resolves when they can take more. */
  congested(): Promise<void> | undefined;
  /** Called when the server has accepted the watch. */
  opened(): void;
  change(change: Change): void;
  /** @param initialEnd whether it also ends the initial events. */
  bookmark(resourceVersion: ResourceVersion, initialEnd: boolean): void;
}

const changeTypes: Readonly<Record<string, Change["type"] | undefined>> = {
  ADDED: "Added",
  MODIFIED: "Modified",
  DELETED: "Deleted",
};

/** One connection of a watch, from request to end. It reports what it reads and decides nothing. */
export class Session {
  /** Events read, bookmarks included. */
  events = 0;
  private readonly options: SessionOptions;
  private readonly abort = new AbortController();
  /** Ends the wait for congested subscribers. */
  private goOn: (() => void) | undefined;
  private readonly scanner = new EnvelopeScanner();
  private ending: Ending | undefined;
  private timers: SessionTimers | undefined;
  private isOpen = false;

  constructor(options: SessionOptions) {
    this.options = options;
  }

  /** Time of the last byte; `undefined` before the watch was accepted. */
  get lastByteAt(): number | undefined {
    return this.timers?.lastByteAt;
  }

  /** Ends the session; the first ending counts. */
  end(ending: Ending): void {
    this.ending ??= ending;
    this.goOn?.();
    this.abort.abort(new Error(ending.type));
  }

  /** Runs the session to its end. Never rejects. */
  async run(): Promise<Ending> {
    // The first ending wins: after an abort, the reader fails as well.
    const read = await this.read().catch(endingOf);
    this.ending ??= read;
    this.timers?.stop();
    this.abort.abort();
    return this.ending;
  }

  private async read(): Promise<Ending> {
    const { transport, clock, path, query, headers, timeoutMs } = this.options;
    const signal = this.abort.signal;
    const response = await transport.request({ method: "GET", path, query, headers, purpose: "watch", signal });
    if (response.status !== 200) return this.refusal(response);
    this.timers = new SessionTimers(clock, { idleMs: () => this.options.idleMs(this.events), timeoutMs }, (type) =>
      this.end({ type }),
    );
    // The body decides if it is a watch: a proxy may have omitted the type, or may label its own page as JSON.
    const isNamed = typeOf(response).includes("json");
    if (isNamed) this.open();
    const quiet = isNamed ? undefined : clock.after(pageMs, () => this.open());
    try {
      return await this.readBody(response);
    } finally {
      quiet?.cancel();
    }
  }

  private async readBody(response: KubeResponse): Promise<Ending> {
    const { clock } = this.options;
    const { scanner } = this;
    const reader = new ValueReader((bytes, start, end) => scanner.scan(bytes, start, end));
    const turn = new TimeSlice(clock);
    let begun = false;
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      const now = clock.monotonic();
      const beginning = reader.pending === 0 ? beginningOf(chunk) : "json";
      if (beginning !== "space" || this.options.spaceEndsSilence()) this.timers?.received(now);
      if (beginning === "space") continue;
      if (beginning === "foreign" && !begun) return foreign(response, chunk);
      begun = true;
      this.open();
      reader.push(chunk, (bytes) => this.event(bytes, now));
      if (this.ending) return this.ending;
      this.timers?.tighten();
      await this.whileCongested();
      if (turn.isOver) await turn.next();
    }
    return { type: "eof", truncated: reader.pending > 0 };
  }

  private open(): void {
    if (this.isOpen || this.ending) return;
    this.isOpen = true;
    this.options.opened();
  }

  private async whileCongested(): Promise<void> {
    let congested = this.options.congested();
    if (!congested) return;
    this.timers?.hold(true);
    while (congested && !this.ending) {
      await this.untilFree(congested);
      congested = this.options.congested();
    }
    this.timers?.hold(false);
  }

  /**
   * Resolves when `congested` does, or when the session ends. Not `Promise.race`: racing with a promise as long-lived as the
   * session would leak memory on each wait.
   */
  private async untilFree(congested: Promise<void>): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.goOn = resolve;
      congested.then(resolve, reject);
    });
    this.goOn = undefined;
  }

  private async refusal(response: KubeResponse): Promise<Ending> {
    const { clock } = this.options;
    const limit = clock.after(refusalMs, () => response.body.destroy());
    try {
      if (response.status >= 400) {
        return { type: "refused", error: await readApiError(response, clock.now()), inStream: false };
      }
      return foreign(response, await readLimited(response.body, excerptLength));
    } finally {
      limit.cancel();
    }
  }

  /** Handles the event that was just scanned. @returns false if nothing after it may be read. */
  private event(bytes: Buffer, receivedAt: number): boolean {
    this.events++;
    const { scanner } = this;
    const type = changeTypes[scanner.type];
    if (type !== undefined && Object.hasOwn(changeTypes, scanner.type)) return this.change(type, bytes, receivedAt);
    if (scanner.type === "ERROR") {
      const error = parseStatus(bytes.toString("utf8", scanner.object.start, scanner.object.end), 500);
      return this.stop({ type: "refused", error, inStream: true });
    }
    if (scanner.type !== "BOOKMARK") return this.poison(`an event has the unknown type ${scanner.type.slice(0, 32)}`);
    if (scanner.object.end === 0) return this.poison("a bookmark has no object");
    const { resourceVersion, kind } = scanner.object;
    const { identity } = this.options;
    if (identity.refusesBookmark(kind)) {
      return this.unsupported(`the server sends a bookmark of ${kind} instead of ${identity.kind}`);
    }
    if (resourceVersion === "") return this.unsupported("a bookmark has no resourceVersion");
    this.options.bookmark(resourceVersion, scanner.endsInitialEvents(bytes));
    return this.ending === undefined;
  }

  private change(type: Change["type"], bytes: Buffer, receivedAt: number): boolean {
    const { object } = this.scanner;
    if (object.end === 0) return this.poison("an event has no object");
    const { identity } = this.options;
    const body = identity.bodyOf(object, bytes, object.start, object.end);
    if (!body) {
      const expected = `${identity.apiVersion} ${identity.kind}`;
      return this.unsupported(`the server sends ${object.apiVersion} ${object.kind} instead of ${expected}`);
    }
    if (object.resourceVersion === "" || object.name === "") {
      return this.poison("an event's object has no name or no resourceVersion");
    }
    const members = identity.membersOf(object, object.start);
    this.options.change({ type, meta: object.meta(), body, members, receivedAt });
    return this.ending === undefined;
  }

  private poison(message: string): boolean {
    return this.stop({ type: "poison", message });
  }

  private unsupported(message: string): boolean {
    return this.stop({ type: "unsupported", message });
  }

  private stop(ending: Ending): boolean {
    this.ending ??= ending;
    return false;
  }
}

const foreign = (response: KubeResponse, text: Buffer | string): Ending => ({
  type: "protocol",
  message: foreignAnswer("watch", response, text),
});

/**
 * Delay of a timer, in milliseconds, from which on the process counts as stopped. If the boot clock has advanced by as much more
 * than the monotonic clock, the machine slept.
 */
const sleptMs = 30_000;
/** How long past `timeoutSeconds` the server may take to end a watch, in milliseconds, even if bytes still trickle. */
const overdueMs = 15_000;

interface SessionDeadlines {
  /** Returns the allowed silence, in milliseconds; called for each check. */
  idleMs(): number;
  /** The `timeoutSeconds` requested from the server, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Deadlines of one connection: silence, total length, and a machine that slept. Any byte restarts the limit on silence, which does
 * not run while this process holds the stream back. One timer serves all of them.
 */
class SessionTimers {
  private readonly clock: Clock;
  private readonly deadlines: SessionDeadlines;
  private readonly expire: (what: "idle" | "overdue" | "suspended") => void;
  private readonly startedAt: number;
  private timer: Timer | undefined;
  private armed = { due: 0, boot: 0, monotonic: 0 };
  private heldBack = false;
  /** Time of the last byte, on the monotonic clock. */
  lastByteAt: number;

  constructor(clock: Clock, deadlines: SessionDeadlines, expire: (what: "idle" | "overdue" | "suspended") => void) {
    this.clock = clock;
    this.deadlines = deadlines;
    this.expire = expire;
    this.startedAt = this.lastByteAt = clock.monotonic();
    this.arm();
  }

  /** Records that bytes arrived. */
  received(at: number): void {
    this.lastByteAt = at;
  }

  /** Rearms the timer if the allowed silence has become shorter since it was set. */
  tighten(): void {
    if (this.heldBack || this.lastByteAt + this.deadlines.idleMs() >= this.armed.due) return;
    this.stop();
    this.arm();
  }

  /** Records whether we are holding the stream back. */
  hold(held: boolean): void {
    this.heldBack = held;
    if (!held) this.lastByteAt = this.clock.monotonic();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }

  private arm(): void {
    const now = this.clock.monotonic();
    const idleAt = (this.heldBack ? now : this.lastByteAt) + this.deadlines.idleMs();
    const due = Math.max(now + 1, Math.min(idleAt, this.overdueAt));
    this.armed = { due, boot: this.clock.sinceBoot(), monotonic: now };
    this.timer = this.clock.after(due - now, () => this.check());
  }

  private check(): void {
    const now = this.clock.monotonic();
    const slept = this.clock.sinceBoot() - this.armed.boot - (now - this.armed.monotonic);
    if (now - this.armed.due > sleptMs || slept > sleptMs) this.expire("suspended");
    else if (now >= this.overdueAt) this.expire("overdue");
    else if (!this.heldBack && now - this.lastByteAt >= this.deadlines.idleMs()) this.expire("idle");
    else this.arm();
  }

  private get overdueAt(): number {
    return this.startedAt + this.deadlines.timeoutMs + overdueMs;
  }
}

/** How much of a foreign answer is shown, in bytes. */
export const excerptLength = 256;

/**
 * Classifies a body by its first chunk: `json` from an API server, `space` alone, or `foreign`, such as a login page. Only the
 * body decides, because a proxy may drop or change the Content-Type.
 */
export function beginningOf(chunk: Buffer): "space" | "json" | "foreign" {
  const at = skipSpace(chunk, 0);
  if (at === chunk.length) return "space";
  return chunk[at] === openBrace ? "json" : "foreign";
}

/** Returns the answer's Content-Type, for messages. */
function typeOf({ headers }: KubeResponse): string {
  return String(headers["content-type"] ?? "no content type");
}

/** Describes a foreign answer to `what`, for messages. @param text the beginning of the body. */
export function foreignAnswer(what: "list" | "watch", response: KubeResponse, text: Buffer | string): string {
  const excerpt = text.toString().slice(0, excerptLength);
  return `the ${what} was answered with ${response.status} ${typeOf(response)}: ${excerpt}`;
}
