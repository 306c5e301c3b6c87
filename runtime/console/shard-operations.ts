import type { z } from "zod";
import { explainShards } from "../control/explain/explainer.ts";
import {
  type RecordAnswer,
  type RecordQuestion,
  type Redeliveries,
  type RedeliverQuestion,
  recordAnswerSchema,
  recordQuestionSchema,
  redeliveriesSchema,
  redeliverQuestionSchema,
} from "../observe/control-api.ts";
import { explanationSchema } from "../observe/explanation.ts";
import { failureSchema } from "../observe/failure.ts";

/** The answer of one replica. Without `status` the replica did not answer, for the reason in `why`. */
interface ShardReply {
  readonly replica: string;
  readonly status: number | undefined;
  readonly text: string;
  readonly why: string | undefined;
}

/** Asks one replica the same request, with this body. */
type AskReplica = (replica: string, body?: object) => Promise<ShardReply>;

/** An answer to the caller. */
export interface JoinedReply {
  readonly status: number;
  readonly data: unknown;
}

/** Redeliveries of all objects, and recordings, that are remembered. */
const mostJobs = 20;
/** Seconds that a replica waits for a delivery to record, so that the deliveries of the others are soon passed on. */
const recordWait = 1;

/** A job of several replicas: the id that each gave it, while it runs there. */
interface SpreadJob<T> {
  readonly of: string;
  readonly running: Map<string, string>;
  readonly last: Map<string, T>;
  readonly silent: Map<string, string>;
  /** Deliveries that are still wanted; `undefined` without a limit. */
  wanted: number | undefined;
}

/** Operations on a function whose shards several replicas have: each is asked, and the answers are one. */
export class ShardOperations {
  private readonly redeliveries = new Map<string, SpreadJob<Redeliveries>>();
  private readonly recordings = new Map<string, SpreadJob<RecordAnswer>>();
  private number = 0;

  /** Explains for all shards: for each trigger, as the shard does that knows the object. */
  async explain(replicas: readonly string[], ask: AskReplica): Promise<JoinedReply> {
    const replies = await Promise.all(replicas.map((replica) => ask(replica)));
    const { found, silent, refused } = sorted(replies, explanationSchema);
    if (found.size === 0) return refused ?? unanswered(silent);
    const elsewhere = silentText(silent);
    const joined = explainShards([...found.values()], elsewhere);
    // A shard that is not ready explains more.
    const report = [...found.values()].find((each) => !each.function.ready)?.function ?? joined.function;
    return { status: 200, data: { ...joined, function: report, ...(elsewhere !== undefined && { elsewhere }) } };
  }

  /** Redelivers. Returns `undefined` for a question of another form. */
  async redeliver(
    name: string,
    replicas: readonly string[],
    body: unknown,
    ask: AskReplica,
  ): Promise<JoinedReply | undefined> {
    const question: RedeliverQuestion | undefined = redeliverQuestionSchema.safeParse(body).data;
    if (!question) return undefined;
    if ("job" in question) return this.progress(name, question.job, ask);
    if (!("all" in question)) return firstSuccess(replicas, question, ask);
    const begun = await this.begin(name, replicas, question, ask, redeliveriesSchema, ({ job }) => job);
    return "status" in begun ? begun : this.redelivered(begun);
  }

  /** Records. Returns `undefined` for a question of another form. */
  async record(
    name: string,
    replicas: readonly string[],
    body: unknown,
    ask: AskReplica,
  ): Promise<JoinedReply | undefined> {
    const question: RecordQuestion | undefined = recordQuestionSchema.safeParse(body).data;
    if (!question) return undefined;
    if (!("recording" in question)) {
      const begun = await this.begin(name, replicas, question, ask, recordAnswerSchema, ({ recording }) => recording);
      if ("status" in begun) return begun;
      begun.wanted = question.count;
      return this.recorded(begun);
    }
    const job = this.recordings.get(question.recording);
    if (job?.of !== name) return undefined;
    const wait = Math.min(question.wait, recordWait);
    job.last.clear();
    await this.follow(
      job,
      ask,
      (recording) => ({ recording, wait }),
      recordAnswerSchema,
      (each) => each.recording,
    );
    return this.recorded(job, question.recording);
  }

  private async progress(name: string, id: string, ask: AskReplica): Promise<JoinedReply | undefined> {
    const job = this.redeliveries.get(id);
    if (job?.of !== name) return undefined;
    await this.follow(
      job,
      ask,
      (part) => ({ job: part }),
      redeliveriesSchema,
      (each) => each.job,
    );
    return this.redelivered(job, id);
  }

  private async begin<T>(
    of: string,
    replicas: readonly string[],
    question: object,
    ask: AskReplica,
    schema: z.ZodType<T>,
    idOf: (answer: T) => string | undefined,
  ): Promise<SpreadJob<T> | JoinedReply> {
    const replies = await Promise.all(replicas.map((replica) => ask(replica, question)));
    const { found, silent, refused } = sorted(replies, schema);
    if (found.size === 0) return refused ?? unanswered(silent);
    const running = new Map<string, string>();
    for (const [replica, answer] of found) {
      const id = idOf(answer);
      if (id !== undefined) running.set(replica, id);
    }
    return { of, running, last: found, silent, wanted: undefined };
  }

  /** Asks the replicas where it still runs. One that does not answer counts as ended. */
  private async follow<T>(
    job: SpreadJob<T>,
    ask: AskReplica,
    question: (id: string) => object,
    schema: z.ZodType<T>,
    idOf: (answer: T) => string | undefined,
  ): Promise<void> {
    const asked = [...job.running];
    const replies = await Promise.all(asked.map(([replica, id]) => ask(replica, question(id))));
    const { found, silent } = sorted(replies, schema);
    for (const [replica] of asked) {
      const answer = found.get(replica);
      const id = answer && idOf(answer);
      if (answer) job.last.set(replica, answer);
      if (id === undefined) job.running.delete(replica);
      else job.running.set(replica, id);
    }
    for (const [replica, why] of silent) job.silent.set(replica, why);
  }

  private redelivered(job: SpreadJob<Redeliveries>, known?: string): JoinedReply {
    const all = [...job.last.values()];
    const whys = Map.groupBy(
      all.flatMap(({ skipped }) => skipped),
      ({ why }) => why,
    );
    const skipped = [...whys].map(([why, each]) => ({ why, count: each.reduce((sum, { count }) => sum + count, 0) }));
    const id = this.keep(this.redeliveries, job, known);
    const queued = all.reduce((sum, each) => sum + each.queued, 0);
    return { status: 200, data: { queued, skipped, ...(id !== undefined && { job: id }), ...elsewhereOf(job) } };
  }

  private recorded(job: SpreadJob<RecordAnswer>, known?: string): JoinedReply {
    const all = [...job.last.values()];
    const taken = all.flatMap((each) => each.taken).slice(0, job.wanted);
    const left = all.reduce((sum, each) => sum + each.left, 0);
    if (job.wanted !== undefined) job.wanted -= taken.length;
    // The replicas forget a recording that nobody asks for.
    if (job.wanted === 0) job.running.clear();
    const id = this.keep(this.recordings, job, known);
    return { status: 200, data: { taken, left, ...(id !== undefined && { recording: id }), ...elsewhereOf(job) } };
  }

  /** Returns the id to ask for next; `undefined` once the job has ended everywhere. */
  private keep<T>(jobs: Map<string, SpreadJob<T>>, job: SpreadJob<T>, known: string | undefined): string | undefined {
    if (job.running.size === 0) {
      if (known !== undefined) jobs.delete(known);
      return undefined;
    }
    const id = known ?? `fleet-${++this.number}`;
    jobs.set(id, job);
    for (const old of [...jobs.keys()].slice(0, -mostJobs)) jobs.delete(old);
    return id;
  }
}

/** The first success, one replica after the other. If each refuses, the most specific refusal. */
async function firstSuccess(replicas: readonly string[], question: object, ask: AskReplica): Promise<JoinedReply> {
  const replies: ShardReply[] = [];
  for (const replica of replicas) {
    const reply = await ask(replica, question);
    if (reply.status === 200) return { status: 200, data: JSON.parse(reply.text) };
    replies.push(reply);
  }
  const { refusals } = sorted(replies, redeliveriesSchema);
  const { silent } = sorted(
    replies.filter(({ status }) => status === undefined),
    redeliveriesSchema,
  );
  // A shard that has never seen the run, or whose object it is not, knows less than the others.
  const isAware = ({ data }: JoinedReply) =>
    failureSchema.safeParse(data).data?.fault?.code !== "WF_RUNTIME_NO_RUN" &&
    !JSON.stringify(data).includes("another shard");
  const refusal = refusals.find(isAware) ?? refusals[0];
  const missing = silentText(silent);
  if (!refusal || missing === undefined) return refusal ?? unanswered(silent);
  const { error, fault } = failureSchema.parse(refusal.data);
  const said = (text: string) => `${text}; ${missing}`;
  return { ...refusal, data: { error: said(error), ...(fault && { fault: { ...fault, what: said(fault.what) } }) } };
}

/** The successful answers by replica, a sentence about each replica without one, and the refusals. */
function sorted<T>(replies: readonly ShardReply[], schema: z.ZodType<T>) {
  const found = new Map<string, T>();
  const silent = new Map<string, string>();
  const refusals: JoinedReply[] = [];
  for (const { replica, status, text, why } of replies) {
    const data = status === undefined ? undefined : parsed(text);
    const answer = status === 200 ? schema.safeParse(data) : undefined;
    if (answer?.success) found.set(replica, answer.data);
    else if (status === undefined) silent.set(replica, `${replica} did not answer: ${why}`);
    else if (status === 200) silent.set(replica, `${replica} did not answer: it is of another version`);
    else {
      refusals.push({ status, data });
      silent.set(replica, `${replica} refused: ${failureSchema.safeParse(data).data?.error ?? status}`);
    }
  }
  return { found, silent, refusals, refused: refusals[0] };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const silentText = (silent: ReadonlyMap<string, string>): string | undefined =>
  silent.size === 0 ? undefined : [...silent.values()].join("; ");

const elsewhereOf = ({ silent }: Pick<SpreadJob<unknown>, "silent">) => {
  const elsewhere = silentText(silent);
  return elsewhere === undefined ? {} : { elsewhere };
};

const unanswered = (silent: ReadonlyMap<string, string>): JoinedReply => ({
  status: 503,
  data: { error: `other replicas run the function: ${silentText(silent) ?? ""}` },
});
