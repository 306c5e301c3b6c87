import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Origin } from "../../catalog/function-source.ts";
import { ApiError } from "../../kube/api-error.ts";
import { dnsLabel } from "../../kube/names.ts";
import type { Logger } from "../../observe/log.ts";
import {
  type Condition,
  type FunctionSpec,
  type Sharing,
  shareOf,
  specOf,
  statusOf,
  wholeReport,
} from "./function-object.ts";
import type { FunctionObjects } from "./function-objects.ts";
import type { FunctionReport } from "./function-report.ts";

/** Minimum milliseconds between two writes of a status. */
const roundMs = 5_000;

/** Milliseconds between two tries while the definition is missing or writing is not allowed, with exponential backoff. */
const retryMs = { from: 5_000, to: 60_000 };

/**
 * Number of functions after which a round is ended if the write of every one was denied. A right is missing, so the API server is
 * not asked for the others.
 */
const mostDenied = 20;

/** Explains how to install the definition. */
const installation =
  "install the chart with `crds.enabled=true`, or apply its `files/functions.watchfire.dev.yaml`; it is then published within a minute";

/** Status codes that concern a single object: bad request, too large, and not matching the definition. */
const invalid: ReadonlySet<number> = new Set([400, 413, 422]);

/** A function to publish. */
export interface PublishedFunction {
  readonly report: FunctionReport;
  readonly origin: Origin;
  /** Absent if the whole function is on this replica. */
  readonly sharing?: Sharing | undefined;
  /** Whether this replica still reports the function. Checked before each write, which may be long after. Default: always. */
  readonly isStill?: () => boolean;
}

/** The functions to publish at one moment. */
export interface Publication {
  readonly functions: readonly PublishedFunction[];
  /** Whether to delete the object of this name, which does not belong to any of these functions. */
  readonly isGone: (name: string) => boolean;
  /**
   * Identifies the slots of this replica, for replicas that share functions. If it changes, others may have written since.
   * Default: nobody else writes.
   */
  readonly held?: string;
}

interface StatusPublisherOptions {
  readonly objects: FunctionObjects;
  readonly account: string;
  readonly read: () => Publication;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** The last written state of a function. Fields are `undefined` if they are unknown. */
interface Published {
  spec?: string;
  status?: string;
  conditions: readonly Condition[];
  /** Replicas that have written a share. */
  shares: readonly string[];
}

/**
 * Keeps one Function object per function up to date. The object is only informative: the runtime never reads it, and continues
 * without it if the definition is missing or writing is refused.
 */
export class StatusPublisher {
  private readonly options: StatusPublisherOptions;
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;
  private published: Map<string, Published> | undefined;
  /** Why the server refused the last write for a function, by the function's name. */
  private readonly refused = new Map<string, string>();
  /** Names of objects that belong to someone else. */
  private readonly foreign = new Set<string>();
  private warned = false;
  private held: string | undefined;

  constructor(options: StatusPublisherOptions) {
    this.options = options;
  }

  start(): void {
    this.running ??= this.run();
  }

  /** Stops writing. The objects stay unchanged. */
  async close(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { clock, log } = this.options;
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted; ) {
      let waitMs = roundMs;
      try {
        await this.round(signal);
        if (this.warned) log.info({}, "function status published again");
        this.warned = false;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.published = undefined;
        waitMs = Math.min(retryMs.from * 2 ** failures++, retryMs.to);
        if (!this.warned) log.warn({ error: faultOf(error).message }, "function status not published");
        this.warned = true;
      }
      await pause(clock, waitMs, signal).catch(() => undefined);
    }
  }

  private async round(signal: AbortSignal): Promise<void> {
    const publication = this.options.read();
    const { objects } = this.options;
    if (publication.held !== this.held) this.published = undefined;
    this.held = publication.held;
    this.published ??= new Map(
      (await objects.list(signal)).map(({ name, conditions, shares }) => {
        return [name, { conditions, shares: [...shares.keys()] }] as const;
      }),
    );
    const present = new Set(publication.functions.map(({ report }) => report.name));
    const denied = new Map<string, ApiError>();
    let tried = 0;
    for (const each of publication.functions) {
      const { name } = each.report;
      if (!dnsLabel.test(name) || each.isStill?.() === false) continue;
      tried++;
      const denial = await this.unlessRefused(name, async () => {
        if (each.sharing?.isFirst === false) await this.publishShare(each.report, each.sharing, signal);
        else await this.publish(each, signal);
      });
      if (!denial) continue;
      denied.set(name, denial);
      if (tried === mostDenied && denied.size === tried) throw denial;
    }
    // A missing right affects all functions; a denial by an admission webhook affects one.
    for (const [name, denial] of denied) {
      if (denied.size === tried) throw denial;
      this.refuse(name, denial);
    }
    for (const name of this.refused.keys()) if (!present.has(name)) this.refused.delete(name);
    for (const name of this.published.keys()) {
      if (present.has(name) || !publication.isGone(name)) continue;
      await objects.delete(name, signal);
      this.published.delete(name);
    }
  }

  /**
   * Makes a write. If the server considers the object invalid, that concerns only this function, and the next round tries again.
   * Returns the error if the write is forbidden, else `undefined`.
   */
  private async unlessRefused(name: string, write: () => Promise<void>): Promise<ApiError | undefined> {
    const { log } = this.options;
    try {
      await write();
      if (this.refused.delete(name)) log.info({ function: name }, "function status published again");
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return error;
      if (!(error instanceof ApiError && invalid.has(error.status))) throw error;
      this.refuse(name, error);
    }
    return undefined;
  }

  private refuse(name: string, error: ApiError): void {
    const why = faultOf(error, `that of ${name} is refused: `).message;
    if (this.refused.get(name) !== why)
      this.options.log.warn({ function: name, error: why }, "function status refused");
    this.refused.set(name, why);
  }

  private async publish({ report, origin, sharing }: PublishedFunction, signal: AbortSignal): Promise<void> {
    const { objects, account, clock } = this.options;
    const { name } = report;
    const spec = specOf(account, origin);
    const known = this.published?.get(name) ?? (await this.create(name, spec, signal));
    if (!known) return;
    if (known.spec !== JSON.stringify(spec)) {
      if (!(await objects.setSpec(name, spec, signal))) return this.forget(name);
      known.spec = JSON.stringify(spec);
    }
    const whole = sharing && sharing.elsewhere.size > 0 ? await this.whole(report, sharing, known, signal) : report;
    const status = statusOf(whole, known.conditions, clock.now());
    const owners = new Set(sharing?.elsewhere.values());
    const over = known.shares.filter((replica) => !owners.has(replica));
    if (known.status === JSON.stringify(status) && over.length === 0) return;
    const shares = Object.fromEntries(over.map((replica) => [replica, null]));
    if (!(await objects.setStatus(name, over.length === 0 ? status : { ...status, shares }, signal))) {
      return this.forget(name);
    }
    known.status = JSON.stringify(status);
    known.conditions = status.conditions;
    known.shares = known.shares.filter((replica) => owners.has(replica));
  }

  /** Combines the report with the shares of other replicas. */
  private async whole(
    report: FunctionReport,
    sharing: Sharing,
    known: Published,
    signal: AbortSignal,
  ): Promise<FunctionReport> {
    const [found] = await this.options.objects.list(signal, report.name);
    known.shares = [...(found?.shares.keys() ?? [])];
    return wholeReport(report, sharing.elsewhere, new Map(found?.shares));
  }

  /**
   * Writes this replica's share. The replica with the first shard creates the object; until then there is nothing to write into.
   */
  private async publishShare(report: FunctionReport, sharing: Sharing, signal: AbortSignal): Promise<void> {
    const { objects } = this.options;
    const { name } = report;
    const [found] = await objects.list(signal, name);
    if (!found) return;
    const share = shareOf(report, sharing.here);
    // The object may have been deleted and created again without it.
    const isThere = found.shares.has(sharing.replica);
    if (isThere && this.published?.get(name)?.status === JSON.stringify(share)) return;
    if (await objects.setShare(name, sharing.replica, share, signal)) {
      this.published?.set(name, { status: JSON.stringify(share), conditions: [], shares: [] });
    }
  }

  /** Returns `undefined` if the name belongs to someone else. */
  private async create(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<Published | undefined> {
    const { objects, log } = this.options;
    if (!(await objects.create(name, spec, signal))) {
      // A replica that had the function before may have created it after the last list.
      const [found] = await objects.list(signal, name);
      if (found) return this.keep(name, { conditions: found.conditions, shares: [...found.shares.keys()] });
      if (!this.foreign.has(name)) {
        const what = `the object ${name} belongs to another runtime, whose name its \`spec.runtime\` has`;
        const hint = "give the function another name, or run it under only one of the two";
        const { message: error } = new WatchfireError("WF_RUNTIME_STATUS_UNWRITTEN", { what, hint });
        log.warn({ function: name, error }, "function status belongs to another runtime");
      }
      this.foreign.add(name);
      return undefined;
    }
    return this.keep(name, { spec: JSON.stringify(spec), conditions: [], shares: [] });
  }

  private keep(name: string, there: Published): Published {
    this.foreign.delete(name);
    this.published?.set(name, there);
    return there;
  }

  /** Forgets an object that was deleted. The next round creates it again. */
  private forget(name: string): void {
    this.published?.delete(name);
  }
}

/** @param of prefix that names the object's function, if only one is affected */
function faultOf(error: unknown, of = ""): WatchfireError {
  const code = "WF_RUNTIME_STATUS_UNWRITTEN";
  // The server's own message for an unknown kind names nothing.
  if (error instanceof ApiError && error.status === 404) {
    const what = "the CustomResourceDefinition functions.watchfire.dev is not installed";
    return new WatchfireError(code, { what, hint: installation });
  }
  return new WatchfireError(code, { what: `${of}${error instanceof Error ? error.message : String(error)}` });
}
