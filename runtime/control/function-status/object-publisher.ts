import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import { ApiError } from "../../kube/api-error.ts";
import { dnsLabel } from "../../kube/names.ts";
import type { Logger } from "../../observe/log.ts";

/** Minimum milliseconds between two writes of a status. */
const roundMs = 5_000;

/** Milliseconds between two tries while the definition is missing or writing is not allowed, with exponential backoff. */
const retryMs = { from: 5_000, to: 60_000 };

/**
 * Number of objects after which a round is ended if the write of every one was denied. A right is missing, so the API server is
 * not asked for the others.
 */
const mostDenied = 20;

/** Status codes that concern a single object: bad request, too large, and not matching the definition. */
const invalid: ReadonlySet<number> = new Set([400, 413, 422]);

/** Messages of the log, and the name of the field that names an object. */
const words = {
  function: {
    plural: "functions",
    failed: "function status not published",
    again: "function status published again",
    refused: "function status refused",
    foreign: "function status belongs to another runtime",
  },
  set: {
    plural: "functionsets",
    failed: "set status not published",
    again: "set status published again",
    refused: "set status refused",
    foreign: "set status belongs to another runtime",
  },
} as const;

/** The writes of one round. */
export interface RoundPlan {
  readonly writes: readonly {
    /** The object's name. One that is no DNS label is left out. */
    readonly name: string;
    /** Whether this replica still reports the object. Checked before the write, which may be long after. Default: always. */
    readonly isStill?: (() => boolean) | undefined;
    readonly write: (signal: AbortSignal) => Promise<void>;
  }[];
  /** Whether to delete the object of this name, which is not among those that are written. */
  readonly isGone: (name: string) => boolean;
  /**
   * Identifies the slots of this replica, for replicas that share functions. If it changes, others may have written since.
   * Default: nobody else writes.
   */
  readonly held?: string | undefined;
}

interface ObjectPublisherParts {
  readonly what: keyof typeof words;
  readonly objects: {
    create(name: string, spec: never, signal: AbortSignal): Promise<boolean>;
    delete(name: string, signal: AbortSignal): Promise<void>;
  };
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

/**
 * Keeps objects of one kind up to date, until it is closed. If the definition is missing or writing is refused, it warns once and
 * tries again, with backoff. `Known`: the last written state of an object.
 */
export abstract class ObjectPublisher<Known> {
  protected published: Map<string, Known> | undefined;
  private readonly parts: ObjectPublisherParts;
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;
  /** Why the server refused the last write of an object, by its name. */
  private readonly refused = new Map<string, string>();
  /** Names of objects that belong to someone else. */
  private readonly foreign = new Set<string>();
  private warned = false;
  private held: string | undefined;

  constructor(parts: ObjectPublisherParts) {
    this.parts = parts;
  }

  /** Returns what is to be written now. */
  protected abstract plan(signal: AbortSignal): RoundPlan | Promise<RoundPlan>;
  /** Returns the existing objects of this runtime: all, or the one of this name. */
  protected abstract list(signal: AbortSignal, name?: string): Promise<Map<string, Known>>;

  start(): void {
    this.running ??= this.run();
  }

  /** Stops writing. The objects stay unchanged. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { clock, log, what } = this.parts;
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted; ) {
      let waitMs = roundMs;
      try {
        await this.round(signal);
        if (this.warned) log.info({}, words[what].again);
        this.warned = false;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.published = undefined;
        waitMs = Math.min(retryMs.from * 2 ** failures++, retryMs.to);
        if (!this.warned) log.warn({ error: this.faultOf(error).message }, words[what].failed);
        this.warned = true;
      }
      await pause(clock, waitMs, signal).catch(() => undefined);
    }
  }

  private async round(signal: AbortSignal): Promise<void> {
    const { writes, isGone, held } = await this.plan(signal);
    const { objects } = this.parts;
    if (held !== this.held) this.published = undefined;
    this.held = held;
    this.published ??= await this.list(signal);
    const present = new Set(writes.map(({ name }) => name));
    const denied = new Map<string, ApiError>();
    let tried = 0;
    for (const { name, isStill, write } of writes) {
      if (!dnsLabel.test(name) || isStill?.() === false) continue;
      tried++;
      const denial = await this.unlessRefused(name, () => write(signal));
      if (!denial) continue;
      denied.set(name, denial);
      if (tried === mostDenied && denied.size === tried) throw denial;
    }
    // A missing right affects all objects; a denial by an admission webhook affects one.
    for (const [name, denial] of denied) {
      if (denied.size === tried) throw denial;
      this.refuse(name, denial);
    }
    for (const name of this.refused.keys()) if (!present.has(name)) this.refused.delete(name);
    for (const name of this.published.keys()) {
      if (present.has(name) || !isGone(name)) continue;
      await objects.delete(name, signal);
      this.published.delete(name);
    }
  }

  /**
   * Makes a write. If the server considers the object invalid, that concerns only this one, and the next round tries again.
   * Returns the error if the write is forbidden, else `undefined`.
   */
  private async unlessRefused(name: string, write: () => Promise<void>): Promise<ApiError | undefined> {
    const { log, what } = this.parts;
    try {
      await write();
      if (this.refused.delete(name)) log.info({ [what]: name }, words[what].again);
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return error;
      if (!(error instanceof ApiError && invalid.has(error.status))) throw error;
      this.refuse(name, error);
    }
    return undefined;
  }

  private refuse(name: string, error: ApiError): void {
    const { log, what } = this.parts;
    const why = this.faultOf(error, `that of ${name} is refused: `).message;
    if (this.refused.get(name) !== why) log.warn({ [what]: name, error: why }, words[what].refused);
    this.refused.set(name, why);
  }

  /** Creates the object. Returns its state; `undefined` if the name belongs to someone else. */
  protected async create(name: string, spec: object, fresh: Known, signal: AbortSignal): Promise<Known | undefined> {
    const { objects, log, what } = this.parts;
    if (await objects.create(name, spec as never, signal)) return this.keep(name, fresh);
    // A replica that had it before may have created it after the last list.
    const found = (await this.list(signal, name)).get(name);
    if (found !== undefined) return this.keep(name, found);
    if (!this.foreign.has(name)) {
      const fault = `the object ${name} belongs to another runtime, whose name its \`spec.runtime\` has`;
      const hint = `give the ${what} another name, or run it under only one of the two`;
      const { message: error } = new WatchfireError("WF_RUNTIME_STATUS_UNWRITTEN", { what: fault, hint });
      log.warn({ [what]: name, error }, words[what].foreign);
    }
    this.foreign.add(name);
    return undefined;
  }

  private keep(name: string, there: Known): Known {
    this.foreign.delete(name);
    this.published?.set(name, there);
    return there;
  }

  /** Forgets an object that was deleted. The next round creates it again. */
  protected forget(name: string): void {
    this.published?.delete(name);
  }

  /** @param of prefix that names the object, if only one is affected */
  private faultOf(error: unknown, of = ""): WatchfireError {
    const code = "WF_RUNTIME_STATUS_UNWRITTEN";
    const definition = `${words[this.parts.what].plural}.watchfire.dev`;
    // The server's own message for an unknown kind names nothing.
    if (error instanceof ApiError && error.status === 404) {
      const what = `the CustomResourceDefinition ${definition} is not installed`;
      const hint = `install the chart with \`crds.enabled=true\`, or apply its \`files/${definition}.yaml\`; it is then published within a minute`;
      return new WatchfireError(code, { what, hint });
    }
    return new WatchfireError(code, { what: `${of}${error instanceof Error ? error.message : String(error)}` });
  }
}
