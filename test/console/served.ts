import { request } from "node:http";
import { text } from "node:stream/consumers";
import type { Hono } from "hono";
import { onTestFinished } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { ConsoleAccess } from "../../runtime/console/access.ts";
import { type ConsoleParts, consoleApp, fleetAnswers, replicaApi } from "../../runtime/console/app.ts";
import { FleetLink, type FleetPeer } from "../../runtime/console/fleet-link.ts";
import { MetricSeries } from "../../runtime/console/metric-series.ts";
import type { AccountReviews } from "../../runtime/control/access/account-reviews.ts";
import { tokenCaller } from "../../runtime/control/access/caller.ts";
import type { FleetReport } from "../../runtime/control/fleet-report.ts";
import type { FunctionReport } from "../../runtime/control/function-status/function-report.ts";
import { functionElsewhere } from "../../runtime/host/replica-link.ts";
import { emptyBatch, type NewDeadLetter } from "../../runtime/journal/batch.ts";
import { DeadLetters } from "../../runtime/journal/dead-letters.ts";
import type { ControlApi, RunsAnswer } from "../../runtime/observe/control-api.ts";
import { type ControlParts, controlRoutes } from "../../runtime/observe/control-routes.ts";
import { serveEndpoints } from "../../runtime/observe/endpoints.ts";
import { UnderWay } from "../../runtime/observe/under-way.ts";
import { gateOf } from "../control/access/gate-of.ts";
import { noCounts } from "../control/function-status/report.ts";
import { MemoryStore } from "../journal/memory-store.ts";

export const token = "the-token";

const letter: NewDeadLetter = {
  view: 1,
  function: "greet",
  trigger: "settings",
  namespace: "default",
  name: "ada",
  uid: "u",
  resourceVersion: resourceVersion("12"),
  type: "Added",
  id: "u/12/Added",
  flags: {},
  body: Buffer.from('{"apiVersion":"v1","kind":"Secret","data":{"password":"aHVudGVyMg=="}}'),
  oldBody: undefined,
  deletedBy: resourceVersion(""),
  receivedAt: 0,
  apiVersion: "v1",
  kind: "ConfigMap",
  attempts: 2,
  error: { name: "TypeError", message: "no 1", stack: "TypeError: no 1\n    at h (functions/greet/handler.ts:2:9)" },
  failedAt: Date.parse("2026-01-01T00:00:02Z"),
};

const run: RunsAnswer["runs"][number] = {
  function: "greet",
  id: "u/12/Added",
  trigger: "settings",
  type: "Added",
  kind: "ConfigMap",
  object: "default/ada",
  resourceVersion: "12",
  attempt: 2,
  outcome: "failed",
  durationMs: 3,
  at: "2026-01-01T00:00:02.000Z",
  error: "TypeError: no 1",
};

export const report: FunctionReport = {
  name: "greet",
  ready: true,
  ...noCounts,
  deadLetters: 1,
  failures: 1,
  lastEvent: run.at,
  triggers: [],
};

const failure = {
  name: "TypeError",
  message: "no 1",
  stack: "TypeError: no 1\n    at h (functions/greet/handler.ts:2:9)",
};
const logged = {
  level: "warn",
  time: run.at,
  function: "greet",
  run: run.id,
  attempt: 2,
  error: failure,
  msg: "attempt failed",
};

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface ServedOptions {
  readonly accounts?: AccountReviews;
  readonly fleet?: FleetReport;
  /** The replica of a fleet that it is: it answers the others, and asks them. */
  readonly replica?: { readonly owner: string; readonly peers: () => readonly FleetPeer[] };
  /** The runs on record. Default: those in memory. */
  readonly history?: ConsoleParts["history"];
  /** Further operations on its function, and its explanations. */
  readonly operations?: Partial<ControlApi> & Partial<Pick<ControlParts, "explain">>;
  /** The changes that are on record, newest first. */
  readonly changes?: Awaited<ReturnType<ConsoleParts["audit"]["recent"]>>;
  /** Fields of the function's report that differ. */
  readonly over?: Partial<FunctionReport>;
  /** The name of its function. Default `greet`. */
  readonly name?: string;
  /** Serves the real page, for a browser. Default: stubs of its files. */
  readonly isWhole?: boolean;
}

/** A console over one function with one failed run and its dead letter. */
export async function servedConsole({
  accounts,
  fleet,
  replica,
  isWhole = false,
  name = "greet",
  history,
  changes = [],
  over = {},
  operations: { explain, ...operations } = {},
}: ServedOptions = {}) {
  const store = new MemoryStore();
  await store.commit({ ...emptyBatch, deadLetters: [{ ...letter, function: name }] });
  const access = new ConsoleAccess(systemClock);
  const audit: Record<string, unknown>[] = [];
  const note = (fields: object, message?: string) => void audit.push({ ...fields, message });
  const reports: FunctionReport[] = [{ ...report, ...over, name }];
  // As in a fleet: the slot, and the number in it.
  const slot = replica && fleet?.slots.find(({ owner }) => owner === fleet.replica)?.slot;
  const deadLetters = () => new DeadLetters(store, undefined, slot === undefined ? "" : `${slot}-`);
  const gate = gateOf({
    ...{ token, deadLetters, hear: note, ...(accounts && { accounts }) },
    functionElsewhere: (id) => functionElsewhere(link, fleet, id),
  });
  const functions: Partial<ControlApi> = {
    runs: async () => ({ runs: [{ ...run, function: name }] }),
    logs: async () => ({ lines: [{ number: 1, line: JSON.stringify(logged) }] }),
    pause: async (name) => ({ changed: true, says: `${name} is paused` }),
    ...operations,
  };
  const inspection = {
    live: () => true,
    ready: () => true,
    obstacle: () => undefined,
    unsaved: () => undefined,
    clock: systemClock,
    status: () => ({ role: "active", sandbox: {}, functions: reports, sources: [], ...(fleet && { fleet }) }),
    metrics: async () => "",
    deadLetters,
    explain: explain ?? (async () => Promise.reject(new Error("not asked"))),
    support: async () => Promise.reject(new Error("not asked")),
    functions: functions as ControlApi,
  };
  const asked: string[] = [];
  let api: Promise<Hono> | Hono | undefined;
  const link =
    replica &&
    (await FleetLink.open("127.0.0.1", 0, {
      self: () => replica.owner,
      peers: replica.peers,
      answer: async (request) => {
        asked.push(`${request.method} ${new URL(request.url).pathname}`);
        const underWay = new UnderWay(systemClock, () => undefined);
        api ??= replicaApi(partsOf(controlRoutes(inspection, underWay)));
        return (await api).fetch(request);
      },
    }));
  if (link) onTestFinished(() => link.close());
  const partsOf = (control: ConsoleParts["control"]): ConsoleParts => ({
    ...inspection,
    ...(link && { link }),
    ...(history && { history }),
    control,
    access,
    gate,
    log: { info: note, warn: note } as never,
    manifests: () => [],
    meanMsOf: () => undefined,
    outcomesOf: () => [{ trigger: "settings", outcome: "retry", count: 1 }],
    series: new MetricSeries(() => [], systemClock),
    configuration: () => ({ versions: { watchfire: "0" }, flags: {}, place: {}, limits: {}, disk: { files: [] } }),
    revisionsOf: async () => ({ current: undefined, revisions: [] }),
    audit: { recent: async () => changes, isKept: false },
    redactData: (_, data) => data,
    sourceText: () => "export default () => {\n  throw new TypeError('no 1');\n};",
    ...(!isWhole && { assets: async () => ({ script: "/* script */", style: "/* style */" }) }),
  });
  const endpoints = await serveEndpoints("127.0.0.1", 0, {
    ...inspection,
    gate: gate.admit,
    console: (control) => consoleApp(partsOf(control)),
    fleet: async (control) => fleetAnswers(partsOf(control)),
  });
  onTestFinished(() => endpoints.close());
  const origin = endpoints.url;
  /** By node:http, which sends any header, Host and Origin included. */
  const ask = (path: string, { method = "GET", headers = {}, body }: Asked = {}) =>
    new Promise<{ status: number; headers: Readonly<Record<string, string>>; body: string }>((resolve, reject) => {
      const sent = request(`${origin}${path}`, { method, headers: { "content-type": "application/json", ...headers } });
      sent.on("error", reject);
      sent.on("response", async (response) => {
        const plain = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
        resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(plain), body: await text(response) });
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  /** Logs a browser in; returns what it sends with each request. */
  const login = async () => {
    const answer = await ask("/api/session", {
      method: "POST",
      headers: { origin },
      body: { code: access.newCode(tokenCaller) },
    });
    const cookie = answer.headers["set-cookie"]?.split(";")[0] ?? "";
    const { proof } = JSON.parse(answer.body) as { proof: string };
    return { cookie, "x-watchfire-proof": proof, origin };
  };
  return { ask, login, origin, access, audit, reports, link, asked, bearing: { authorization: `Bearer ${token}` } };
}
