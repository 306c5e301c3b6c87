import type { Clock } from "../../base/clock.ts";
import type { Origin } from "../../catalog/function-source.ts";
import type { Logger } from "../../observe/log.ts";
import {
  type Condition,
  type DeployedBy,
  type Sharing,
  shareOf,
  specOf,
  statusOf,
  wholeReport,
} from "./function-object.ts";
import type { FunctionObjects } from "./function-objects.ts";
import type { FunctionReport } from "./function-report.ts";
import { ObjectPublisher, type RoundPlan } from "./object-publisher.ts";

/** A function to publish. */
export interface PublishedFunction extends Pick<RoundPlan["writes"][number], "isStill"> {
  readonly report: FunctionReport;
  readonly origin: Origin;
  /** The deployment of its code. Default: unknown, or its code is in a folder. */
  readonly deployed?: DeployedBy | undefined;
  /** Absent if the whole function is on this replica. */
  readonly sharing?: Sharing | undefined;
}

/** The functions to publish at one moment. */
export interface Publication extends Pick<RoundPlan, "isGone" | "held"> {
  readonly functions: readonly PublishedFunction[];
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
export class StatusPublisher extends ObjectPublisher<Published> {
  private readonly options: StatusPublisherOptions;

  constructor(options: StatusPublisherOptions) {
    super({ what: "function", ...options });
    this.options = options;
  }

  protected plan(): RoundPlan {
    const { functions, isGone, held } = this.options.read();
    const writes = functions.map((each) => ({
      name: each.report.name,
      isStill: each.isStill,
      write: async (signal: AbortSignal) => {
        if (each.sharing?.isFirst === false) await this.publishShare(each.report, each.sharing, signal);
        else await this.publish(each, signal);
      },
    }));
    return { writes, isGone, held };
  }

  protected async list(signal: AbortSignal, name?: string): Promise<Map<string, Published>> {
    const found = await this.options.objects.list(signal, name);
    return new Map(found.map(({ name, conditions, shares }) => [name, { conditions, shares: [...shares.keys()] }]));
  }

  private async publish({ report, origin, deployed, sharing }: PublishedFunction, signal: AbortSignal): Promise<void> {
    const { objects, account, clock } = this.options;
    const { name } = report;
    const spec = specOf(account, origin, deployed);
    const fresh = { spec: JSON.stringify(spec), conditions: [], shares: [] };
    const known = this.published?.get(name) ?? (await this.create(name, spec, fresh, signal));
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
}
