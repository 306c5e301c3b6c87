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

/** At most one write of a status in this time, in milliseconds. */
const roundMs = 5_000;

/** Between two tries while the definition is missing or writing is not allowed, in milliseconds: ever longer. */
const retryMs = { from: 5_000, to: 60_000 };

/** So many functions that are denied, and none that is not: a right is missing. An API server is not asked for all the others. */
const mostDenied = 20;

/** How the definition comes to be there. */
const installation =
  "install the chart with `crds.enabled=true`, or apply its `files/functions.watchfire.dev.yaml`; it is kept within a minute then";

/** Answers that are of one object alone: bad request, too large, and against the definition. */
const invalid: ReadonlySet<number> = new Set([400, 413, 422]);

/** A function to publish. */
export interface PublishedFunction {
  readonly report: FunctionReport;
  readonly origin: Origin;
  /** Absent: all of the function is here. */
  readonly sharing?: Sharing | undefined;
  /** Whether it is still this replica's to tell: asked before it is written, which may be long after. Default: it is. */
  readonly isStill?: () => boolean;
}

/** What there is to publish at one moment. */
export interface Publication {
  readonly functions: readonly PublishedFunction[];
  /** Whether the object of this name, which none of the functions has, is to go. */
  readonly isGone: (name: string) => boolean;
  /** Of replicas that share functions: another text means that others may have written since. Default: nobody else writes. */
  readonly held?: string;
}

interface StatusPublisherOptions {
  readonly objects: FunctionObjects;
  readonly account: string;
  readonly read: () => Publication;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

/** What was last written of a function; undefined where that is not known. */
interface Published {
  spec?: string;
  status?: string;
  conditions: readonly Condition[];
  /** Replicas that have said how a part of it stands. */
  shares: readonly string[];
}

/**
 * Keeps one Function object per function. It is a picture and nothing else. The runtime never reads it, and goes on
 * without it where the definition is missing or writing is refused.
 */
export class StatusPublisher {
  private readonly options: StatusPublisherOptions;
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;
  private published: Map<string, Published> | undefined;
  /** Why the server took none of what there was to write of a function last, by the function's name. */
  private readonly refused = new Map<string, string>();
  /** Names of objects that are somebody else's. */
  private readonly foreign = new Set<string>();
  private warned = false;
  private held: string | undefined;

  constructor(options: StatusPublisherOptions) {
    this.options = options;
  }

  start(): void {
    this.running ??= this.run();
  }

  /** Writes nothing more; the objects stay as they are. */
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
        if (this.warned) log.info({}, "function status kept again");
        this.warned = false;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        this.published = undefined;
        waitMs = Math.min(retryMs.from * 2 ** failures++, retryMs.to);
        if (!this.warned) log.warn({ error: faultOf(error).message }, "function status not kept");
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
    // A right that is missing is all functions' trouble, and what an admission webhook denies that of one.
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
   * An object that the server takes for invalid is its function's own trouble: it is tried again in the next round. Gives the
   * answer to one that may not be written.
   */
  private async unlessRefused(name: string, write: () => Promise<void>): Promise<ApiError | undefined> {
    const { log } = this.options;
    try {
      await write();
      if (this.refused.delete(name)) log.info({ function: name }, "function status kept again");
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

  /** With what other replicas say of their parts. */
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

  /** The replica that has its first shard makes the object: until then there is nothing to write into. */
  private async publishShare(report: FunctionReport, sharing: Sharing, signal: AbortSignal): Promise<void> {
    const { objects } = this.options;
    const { name } = report;
    const [found] = await objects.list(signal, name);
    if (!found) return;
    const share = shareOf(report, sharing.here);
    // Somebody may have deleted the object, which then came back without it.
    const isThere = found.shares.has(sharing.replica);
    if (isThere && this.published?.get(name)?.status === JSON.stringify(share)) return;
    if (await objects.setShare(name, sharing.replica, share, signal)) {
      this.published?.set(name, { status: JSON.stringify(share), conditions: [], shares: [] });
    }
  }

  /** Undefined where the name is another's. */
  private async create(name: string, spec: FunctionSpec, signal: AbortSignal): Promise<Published | undefined> {
    const { objects, log } = this.options;
    if (!(await objects.create(name, spec, signal))) {
      // A replica that had the function before may have made it after the last list.
      const [found] = await objects.list(signal, name);
      if (found) return this.keep(name, { conditions: found.conditions, shares: [...found.shares.keys()] });
      if (!this.foreign.has(name)) {
        const what = `the object ${name} belongs to another runtime, whose name its \`spec.runtime\` has`;
        const hint = "give the function another name, or run it under one of the two alone";
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

  /** Somebody deleted it: it is made again in the next round. */
  private forget(name: string): void {
    this.published?.delete(name);
  }
}

/** @param of says whose object it is, where it is not all of them */
function faultOf(error: unknown, of = ""): WatchfireError {
  const code = "WF_RUNTIME_STATUS_UNWRITTEN";
  // A server that knows no such kind says so in words that name nothing.
  if (error instanceof ApiError && error.status === 404) {
    const what = "the CustomResourceDefinition functions.watchfire.dev is not installed";
    return new WatchfireError(code, { what, hint: installation });
  }
  return new WatchfireError(code, { what: `${of}${error instanceof Error ? error.message : String(error)}` });
}
