import type { Context, Hono, MiddlewareHandler, Next } from "hono";
import type { z } from "zod";
import type { FleetReport } from "../control/fleet-report.ts";
import { type PauseAnswer, pauseAnswerSchema } from "../observe/control-api.ts";
import { idsSchema } from "../observe/control-routes.ts";
import { replayAnswerSchema } from "../observe/dead-letter.ts";
import type { FleetLink } from "./fleet-link.ts";
import { type MergeRule, merges } from "./merged-answers.ts";
import { ownerOfLetter, ownersOf, replicaName, runsHere, unasked } from "./replicas.ts";
import { overviewSchema } from "./schemas.ts";
import { type JoinedReply, ShardOperations } from "./shard-operations.ts";

/** Most replicas that are asked. Further ones count as silent. */
const mostPeers = 64;

export interface FleetAnswersParts {
  readonly link: Pick<FleetLink, "others" | "ask">;
  /** The fleet, as this replica sees it. */
  readonly fleet: () => FleetReport | undefined;
  /** Answers for this replica alone. */
  readonly own: Pick<Hono, "request">;
}

/** Why a replica did not answer, by its name. */
type Silent = ReadonlyMap<string, string>;

/**
 * Answers for the whole fleet: asks the other replicas, and joins their answers with this replica's. The rights of the caller were
 * checked before. Replicas that do not answer in time are named in the answer.
 */
export class FleetAnswers {
  private readonly parts: FleetAnswersParts;
  private readonly shards = new ShardOperations();

  constructor(parts: FleetAnswersParts) {
    this.parts = parts;
  }

  readonly handle: MiddlewareHandler = async (c, next) => {
    const fleet = this.parts.fleet();
    if (!fleet || (this.parts.link.others.length === 0 && ownersBut(fleet).length === 0)) return next();
    const path = c.req.path.replace(/^\/api/, "");
    const isRead = c.req.method === "GET";
    const merge = isRead ? merges.find((each) => each.path.test(path)) : undefined;
    if (merge) return this.joined(c, next, fleet, merge);
    const letter = isRead ? /^\/dead-letters\/(\d+-\d+)$/.exec(path)?.[1] : undefined;
    if (letter !== undefined) return this.ofLetter(c, next, ownerOfLetter(fleet, letter));
    const name = /^\/(?:functions|explain)\/([^/]+)/.exec(path)?.[1];
    if (name !== undefined) return this.ofFunction(c, next, fleet, decodeURIComponent(name), path);
    const change = /^\/dead-letters\/(replay|drop)$/.exec(path)?.[1];
    if (!isRead && change !== undefined) return this.changeLetters(c, next, fleet);
    return next();
  };

  /** Joins the answers of all replicas. */
  private async joined(c: Context, next: Next, fleet: FleetReport, { merge }: MergeRule): Promise<void> {
    c.set("isPart", true);
    const [others] = await Promise.all([this.askAll(c, fleet), next()]);
    const own = c.res.ok ? [{ replica: fleet.replica, data: (await c.res.clone().json()) as unknown }] : [];
    const answers = [...own, ...others.found];
    if (answers.length === 0) return;
    const silent = new Map(others.silent);
    let whole: unknown;
    try {
      whole = merge(answers, c.req.query());
    } catch {
      // A replica of another version: this one's answer is shown.
      for (const { replica } of others.found) silent.set(replica, "it is of another version");
      if (own.length === 0) return;
      whole = merge(own, c.req.query());
    }
    const answered = new Set(answers.map(({ replica }) => replica).filter((name) => !silent.has(name)));
    answer(c, isArray(whole) ? whole : completed(whole, fleet, answered, silent));
  }

  /** Relays a request about one function to its owners, if it does not run here. */
  private async ofFunction(c: Context, next: Next, fleet: FleetReport, name: string, path: string): Promise<void> {
    const owners = ownersOf(fleet, name);
    if (owners.length === 0) return next();
    const isHere = runsHere(fleet, name);
    if (isHere || owners.length > 1) {
      const joined = await this.ofShards(c, isHere ? [fleet.replica, ...owners] : owners, fleet.replica, name, path);
      if (joined) return answer(c, joined.data, joined.status);
    }
    const isPause = c.req.method === "POST" && /\/(?:pause|resume)$/.test(path);
    if (isHere && !isPause) return next();
    const body = c.req.method === "POST" ? await c.req.text() : undefined;
    c.set("isPart", true);
    const asked = isPause ? owners : owners.slice(0, 1);
    const answers = await Promise.all(asked.map((replica) => this.askNamed(replica, c, body)));
    const silent = answers.flatMap(({ replica, why }) =>
      why === undefined ? [] : `${replica} did not answer: ${why}`,
    );
    if (isHere) {
      await next();
      if (silent.length === 0 || !c.res.ok) return;
      const own: PauseAnswer = pauseAnswerSchema.parse(await c.res.clone().json());
      return answer(c, { ...own, says: `${own.says}; ${silent.join("; ")}` });
    }
    const said = answers.find(({ status }) => status !== undefined);
    if (said?.status !== undefined) return relay(c, said.status, said.text);
    return answer(c, { error: `another replica runs the function: ${silent.join("; ")}` }, 503);
  }

  /** Explains, redelivers or records by all replicas that have shards of a function. Returns `undefined` for anything else. */
  private async ofShards(
    c: Context,
    replicas: readonly string[],
    self: string,
    name: string,
    path: string,
  ): Promise<JoinedReply | undefined> {
    const ask = (replica: string, body?: object) => {
      const text = body && JSON.stringify(body);
      return replica === self ? this.askSelf(c, text) : this.askNamed(replica, c, text);
    };
    if (c.req.method === "GET") return path.startsWith("/explain/") ? this.shards.explain(replicas, ask) : undefined;
    const operation = /\/(redeliver|record)$/.exec(path)?.[1] as "redeliver" | "record" | undefined;
    if (operation === undefined) return undefined;
    return this.shards[operation](name, replicas, await c.req.json().catch(() => undefined), ask);
  }

  private async ofLetter(c: Context, next: Next, owner: string): Promise<void> {
    if (owner === "") return next();
    const { status, text, why } = await this.askNamed(owner, c);
    if (status !== undefined) return relay(c, status, text);
    return answer(c, { error: `the dead letter is with ${owner}, which did not answer: ${why}` }, 503);
  }

  /** Replays or drops each dead letter at the replica that has it, one replica after the other, until one fails. */
  private async changeLetters(c: Context, next: Next, fleet: FleetReport): Promise<void> {
    const asked = idsSchema.safeParse(await c.req.json().catch(() => undefined));
    if (!asked.success) return next();
    const byOwner = Map.groupBy(asked.data.ids, (id) => ownerOfLetter(fleet, id) || fleet.replica);
    if ([...byOwner.keys()].every((owner) => owner === fleet.replica)) return next();
    const waiting: z.infer<typeof replayAnswerSchema>["waiting"] = [];
    for (const [owner, ids] of byOwner) {
      const body = JSON.stringify({ ids });
      const { status, text, why } =
        owner === fleet.replica ? await this.askSelf(c, body) : await this.askNamed(owner, c, body);
      if (status === undefined) {
        const count = ids.length === 1 ? "a dead letter is" : `${ids.length} dead letters are`;
        return answer(c, { error: `${count} with ${owner}, which did not answer: ${why}` }, 503);
      }
      if (status >= 400) return relay(c, status, text);
      waiting.push(...replayAnswerSchema.parse(JSON.parse(text)).waiting);
    }
    answer(c, { waiting });
  }

  private async askSelf(c: Context, body?: string) {
    const headers = { "content-type": "application/json" };
    const init = { method: c.req.method, headers, ...(body !== undefined && { body }) };
    const response = await this.parts.own.request(apiPath(c), init);
    const replica = this.parts.fleet()?.replica ?? "";
    return { replica, status: response.status, text: await response.text(), why: undefined };
  }

  /** Sends the request to each other replica at the same time. A replica that has no such thing has answered, with nothing. */
  private async askAll(c: Context, fleet: FleetReport) {
    const names = [...new Set([...this.parts.link.others.map(({ owner }) => replicaName(owner)), ...ownersBut(fleet)])];
    const answers = await Promise.all(names.slice(0, mostPeers).map((replica) => this.askNamed(replica, c)));
    const silent = new Map(names.slice(mostPeers).map((name) => [name, "too many replicas"]));
    const found = answers.flatMap(({ replica, status, text, why }) => {
      if (status === undefined) silent.set(replica, why);
      else if (status >= 500) silent.set(replica, `it answered ${status}`);
      return status === 200 ? [{ replica, data: JSON.parse(text) as unknown }] : [];
    });
    return { found, silent };
  }

  private async askNamed(replica: string, c: Context, body?: string) {
    const { link } = this.parts;
    const peer = link.others.find(({ owner }) => replicaName(owner) === replica);
    try {
      if (!peer) throw new Error("it is not alive");
      if (peer.announcement === undefined) throw new Error("it has no console");
      return {
        replica,
        why: undefined,
        ...(await link.ask(peer.owner, c.req.method, apiPath(c), body)),
      };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { replica, status: undefined, text: "", why };
    }
  }
}

/** The path and the query below `/api`, where replicas answer. Commands ask at their older paths, without it. */
function apiPath(c: Context): string {
  const { pathname, search } = new URL(c.req.url);
  return `${pathname.startsWith("/api/") ? "" : "/api"}${pathname}${search}`;
}

const ownersBut = ({ replica, slots }: FleetReport): string[] => [
  ...new Set(slots.flatMap(({ owner }) => (owner === "" || owner === replica ? [] : owner))),
];

const isArray = (value: unknown): value is unknown[] => Array.isArray(value);

/** Adds the replicas that are missing to an answer. */
function completed(whole: unknown, fleet: FleetReport, answered: ReadonlySet<string>, silent: Silent): object {
  const elsewhere = unasked(fleet, answered, silent);
  const overview = overviewSchema.safeParse(whole);
  const replicas = overview.data?.replicas?.map((each) => ({ ...each, answers: answered.has(each.name) }));
  const known = new Set(replicas?.map(({ name }) => name));
  const idle = [...answered, ...silent.keys()].filter((name) => !known.has(name));
  const rows = idle.map((name) => ({ name, slots: [], functions: [], answers: answered.has(name) }));
  const { elsewhere: _, ...rest } = whole as { readonly elsewhere?: string };
  return {
    ...rest,
    ...(replicas && { replicas: [...replicas, ...rows] }),
    ...(elsewhere !== undefined && { elsewhere }),
  };
}

function answer(c: Context, data: unknown, status = 200): void {
  relay(c, status, JSON.stringify(data));
}

function relay(c: Context, status: number, text: string): void {
  c.res = undefined;
  c.res = new Response(text, { status, headers: { "content-type": "application/json" } });
}
