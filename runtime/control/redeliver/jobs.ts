import { type Clock, pause } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Redeliveries } from "../../observe/control-api.ts";
import type { RedeliveryCounts } from "./redeliverer.ts";

/** Milliseconds after which a progress answer is sent. The endpoints close a connection that is silent for 15 s. */
const answerMs = 8_000;
/** Number of jobs that are remembered. Clients ask again without a pause, so no client asks for an older one. */
const mostKept = 20;

interface Job {
  readonly of: string;
  readonly tally: RedeliveryCounts;
  readonly done: Promise<"done">;
}

/** Redeliveries that may take longer than a request. Clients get the progress and ask again. */
export class Jobs {
  private readonly clock: Clock;
  private readonly jobs = new Map<string, Job>();
  private number = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Starts a redelivery of the function `of`. `work` adds its counts to `tally`. */
  begin(of: string, work: (tally: RedeliveryCounts) => Promise<void>): Promise<Redeliveries> {
    const tally: RedeliveryCounts = new Map();
    const id = String(++this.number);
    const done = work(tally).then(() => "done" as const);
    done.catch(() => undefined); // reported to the client that asks
    this.jobs.set(id, { of, tally, done });
    for (const old of [...this.jobs.keys()].slice(0, -mostKept)) this.jobs.delete(old);
    return this.ask(of, id);
  }

  /**
   * Returns a job's progress. Rejects with its error if it failed, or with WF_RUNTIME_NOT_REDELIVERED if there is no such job.
   */
  async ask(of: string, id: string): Promise<Redeliveries> {
    const job = this.jobs.get(id);
    if (job?.of !== of) {
      throw new WatchfireError("WF_RUNTIME_NOT_REDELIVERED", {
        what: "the runtime knows of no such redelivery",
        actual: id,
      });
    }
    const late = new AbortController();
    const ended = await Promise.race([
      job.done,
      pause(this.clock, answerMs, late.signal).catch(() => undefined),
    ]).finally(() => late.abort());
    return { ...redeliveriesOf(job.tally), ...(ended === undefined && { job: id }) };
  }
}

/** Converts the counts to an answer. */
const redeliveriesOf = (tally: RedeliveryCounts): Redeliveries => ({
  queued: tally.get("queued") ?? 0,
  skipped: [...tally].flatMap(([why, count]) => (why === "queued" ? [] : [{ why, count }])),
});

/** The error of a shard that does not know the run. Another shard's error is more specific. */
const unaware = "WF_RUNTIME_NO_RUN";

/**
 * Returns the first success. If every shard fails, rejects with the most specific error, extended by `elsewhere`: where the other
 * shards are, or `undefined` if all are here.
 */
export async function anyShard<T>(
  shards: readonly T[],
  redeliver: (shard: T) => Promise<RedeliveryCounts>,
  elsewhere: string | undefined,
): Promise<Redeliveries> {
  const refusals: unknown[] = [];
  for (const shard of shards) {
    try {
      return redeliveriesOf(await redeliver(shard));
    } catch (error) {
      refusals.push(error);
    }
  }
  const isAware = (error: unknown) => !(error instanceof WatchfireError && error.code === unaware);
  const refusal = refusals.find(isAware) ?? refusals[0];
  if (elsewhere === undefined || !(refusal instanceof WatchfireError)) throw refusal;
  const what = `${refusal.detail.what}; this applies only here: ${elsewhere}`;
  throw new WatchfireError(refusal.code, { ...refusal.detail, what, cause: refusal });
}
