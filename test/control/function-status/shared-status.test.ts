// Replicas with shards of one function, and the object that they maintain together.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { parse } from "yaml";
import type { Sharing } from "../../../runtime/control/function-status/function-object.ts";
import { FunctionObjects } from "../../../runtime/control/function-status/function-objects.ts";
import type { FunctionReport } from "../../../runtime/control/function-status/function-report.ts";
import { type Publication, StatusPublisher } from "../../../runtime/control/function-status/status-publisher.ts";
import { ApiError } from "../../../runtime/kube/api-error.ts";
import { connectDirect } from "../../../runtime/kube/direct.ts";
import type { KubeRequest } from "../../../runtime/kube/transport.ts";
import { admin, cluster } from "../../scenarios/cluster.ts";
import { ImpatientClock } from "../../tools/impatient-clock.ts";
import { until } from "../../tools/until.ts";
import { reportOf } from "./report.ts";

vi.setConfig({ testTimeout: 60_000 });

const root = "/apis/watchfire.dev/v1alpha1/namespaces/default/functions";
const definition = join(import.meta.dirname, "../../../deploy/chart/files/functions.watchfire.dev.yaml");
await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", parse(await readFile(definition, "utf8")));
await until("functions are served", 20_000, async () => (await admin.reply("GET", root)).status === 200);

const report = (more: Partial<FunctionReport> = {}) =>
  reportOf({
    triggers: [{ name: "settings", apiVersion: "v1", kind: "ConfigMap", state: "watching" }],
    ...more,
  });

/** A replica that publishes the given status in rounds. */
class Teller {
  private readonly clock = new ImpatientClock();
  private rounds = 0;
  publication: Publication = { functions: [], isGone: () => false };

  /**
   * `warn` is called for each warning; by default a warning fails the test. `denied` selects the requests that an admission
   * webhook denies.
   */
  constructor(
    account: string,
    warn = (fields: object): void => expect.unreachable(JSON.stringify(fields)),
    denied: (request: KubeRequest) => boolean = () => false,
  ) {
    const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
    const json: typeof transport.json = transport.json.bind(transport);
    const denial = { status: 403, message: 'admission webhook "names.example" denied the request' };
    transport.json = (request, limit) =>
      denied(request) ? Promise.reject(new ApiError(denial)) : json(request, limit);
    const publisher = new StatusPublisher({
      objects: new FunctionObjects(transport, "default", account),
      account,
      read: () => {
        this.rounds++;
        return this.publication;
      },
      clock: this.clock,
      log: { info: () => {}, warn },
    });
    publisher.start();
    onTestFinished(async () => {
      await publisher.close();
      await transport.close();
    });
  }

  tells(sharing: Omit<Sharing, "elsewhere"> & { readonly elsewhere?: Record<number, string> }, of = report()): void {
    const elsewhere = new Map(Object.entries(sharing.elsewhere ?? {}).map(([slot, owner]) => [Number(slot), owner]));
    const origin = { type: "folder", manifest: "hot/function.yaml" } as const;
    this.publication = {
      functions: [{ report: of, origin, sharing: { ...sharing, elsewhere } }],
      isGone: () => false,
      held: sharing.here.join(),
    };
  }

  /** Resolves when a round that begins now is complete. `longestMs`: maximum length of the waits that are skipped. */
  async round(longestMs = 5_000): Promise<void> {
    const before = this.rounds;
    await until("another round has begun, and is over", 20_000, async () => {
      return this.clock.cutShort(5_000, longestMs + 1) > 0 && this.rounds > before + 1;
    });
  }
}

const ready = async () => {
  const { status } = await admin.get(`${root}/hot`);
  return status.conditions.find(({ type }: { type: string }) => type === "Ready");
};

test("an object tells of a whole function while its shards are with two replicas, move, and are with one again", async () => {
  const [one, two] = [new Teller("shared"), new Teller("shared")];
  one.tells({ replica: "one", isFirst: true, here: [1], elsewhere: { 5: "two" } }, report({ failures: 1 }));
  await one.round();
  expect(await ready()).toMatchObject({ status: "False", reason: "Starting" });

  two.tells({ replica: "two", isFirst: false, here: [5] }, report({ failures: 2, deadLetters: 4 }));
  await two.round();
  await one.round();
  expect(await ready()).toMatchObject({ status: "True" });
  expect((await admin.get(`${root}/hot`)).status).toMatchObject({ failures: 3, deadLetters: 4 });

  // The object is deleted: both replicas write their parts again, though nothing of them has changed.
  await admin.delete(`${root}/hot`);
  for (const each of [one, two, one, one]) await each.round();
  expect((await admin.get(`${root}/hot`)).status).toMatchObject({ failures: 3, deadLetters: 4 });
  expect(await ready()).toMatchObject({ status: "True" });

  // The first shard moves to the other replica, so each now has the other's part.
  one.publication = { functions: [], isGone: () => false, held: "" };
  await one.round();
  two.tells({ replica: "two", isFirst: true, here: [1, 5] }, report({ failures: 7 }));
  await two.round();
  const { status } = await admin.get(`${root}/hot`);
  expect([status.failures, status.shares ?? {}]).toEqual([7, {}]);
  expect(await ready()).toMatchObject({ status: "True" });
});

test("a share of a replica that gave its shard to another is taken away, also where nothing else has changed", async () => {
  const [one, two, three] = [new Teller("moving"), new Teller("moving"), new Teller("moving")];
  const of = report({ name: "moves" });
  one.tells({ replica: "one", isFirst: true, here: [1], elsewhere: { 5: "two" } }, of);
  await one.round();
  two.tells({ replica: "two", isFirst: false, here: [5] }, of);
  await two.round();
  await one.round();
  three.tells({ replica: "three", isFirst: false, here: [5] }, of);
  await three.round();
  one.tells({ replica: "one", isFirst: true, here: [1], elsewhere: { 5: "three" } }, of);
  await one.round();
  expect(Object.keys((await admin.get(`${root}/moves`)).status.shares)).toEqual(["three"]);
});

const whole = (name: string, more: Partial<FunctionReport> = {}) => ({
  report: report({ name, ...more }),
  origin: { type: "folder", manifest: "hot/function.yaml" } as const,
});

test("an object that another replica made after the last list is kept on, by the replica that has the function now", async () => {
  const [one, two] = [new Teller("late"), new Teller("late")];
  two.publication = { functions: [], isGone: () => false, held: "5" };
  await two.round();
  one.publication = { functions: [whole("late", { failures: 1 })], isGone: () => false, held: "1,5" };
  await one.round();
  two.publication = { functions: [whole("late", { failures: 2 })], isGone: () => false, held: "5" };
  await two.round();
  expect((await admin.get(`${root}/late`)).status).toMatchObject({ failures: 2 });
});

test("a function that went to another replica while others were written is not written", async () => {
  const one = new Teller("leaves-meanwhile");
  const written = whole("written");
  one.publication = {
    functions: [
      { ...written, isStill: () => true },
      { ...whole("left"), isStill: () => false },
    ],
    isGone: () => false,
  };
  await one.round();
  const found = async (name: string) => (await admin.reply("GET", `${root}/${name}`)).status;
  expect([await found("written"), await found("left")]).toEqual([200, 404]);
});

test("a function that is gone takes its object along, by the replica that has its first slot alone", async () => {
  const [one, two] = [new Teller("leaving"), new Teller("leaving")];
  one.tells({ replica: "one", isFirst: true, here: [1] }, report({ name: "leaves" }));
  await one.round();
  expect((await admin.reply("GET", `${root}/leaves`)).status).toBe(200);
  two.publication = { functions: [], isGone: () => false, held: "5" };
  await two.round();
  expect((await admin.reply("GET", `${root}/leaves`)).status).toBe(200);
  one.publication = { functions: [], isGone: (name) => name === "leaves", held: "1" };
  await one.round();
  expect((await admin.reply("GET", `${root}/leaves`)).status).toBe(404);
});

test("a status that the server refuses keeps no other function's from being written, and is told of once", async () => {
  const warnings: object[] = [];
  const teller = new Teller("refused", (fields) => warnings.push(fields));
  const origin = { type: "folder", manifest: "functions" } as const;
  const tell = (failures: number) => {
    const functions = [report({ name: "odd", failures }), report({ name: "sound" })];
    teller.publication = { functions: functions.map((of) => ({ report: of, origin })), isGone: () => false };
  };
  // The definition requires integers.
  tell(1.5);
  await teller.round();
  await teller.round();
  expect((await admin.get(`${root}/sound`)).status.conditions).toContainEqual(
    expect.objectContaining({ type: "Ready", status: "True" }),
  );
  expect(warnings).toEqual([{ function: "odd", error: expect.stringContaining("failures") }]);
  tell(2);
  await teller.round();
  expect((await admin.get(`${root}/odd`)).status.failures).toBe(2);
});

test("an object that is denied for good keeps no other function's from being written, and is told of once", async () => {
  const warnings: object[] = [];
  const denied = ({ method, body }: KubeRequest) => method === "POST" && String(body).includes('"name":"denied"');
  const teller = new Teller("denying", (fields) => warnings.push(fields), denied);
  const origin = { type: "folder", manifest: "functions" } as const;
  const functions = ["denied", "granted"].map((name) => ({ report: report({ name }), origin }));
  teller.publication = { functions, isGone: (name) => name === "over" };
  await admin.post(root, {
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name: "over", labels: { "watchfire.dev/runtime": "denying" } },
    spec: { runtime: "denying", source: {} },
  });
  await teller.round();
  await teller.round();
  expect((await admin.get(`${root}/granted`)).status.conditions).toContainEqual(
    expect.objectContaining({ type: "Ready", status: "True" }),
  );
  expect((await admin.reply("GET", `${root}/over`)).status).toBe(404);
  expect(warnings).toEqual([{ function: "denied", error: expect.stringContaining("denied the request") }]);
});

test("where nothing may be written that is told of once for all functions", async () => {
  const warnings: object[] = [];
  const asked = new Set<string>();
  const denied = ({ method, body }: KubeRequest) => method === "POST" && asked.add(String(body)).size > 0;
  const teller = new Teller("forbidden", (fields) => warnings.push(fields), denied);
  const origin = { type: "folder", manifest: "functions" } as const;
  const functions = Array.from({ length: 100 }, (_, n) => `f${n}`).map((name) => ({
    report: report({ name }),
    origin,
  }));
  teller.publication = { functions, isGone: () => false };
  await teller.round(60_000);
  await teller.round(60_000);
  // An API server must not be asked forever for each of them.
  expect(asked.size).toBe(20);
  expect(warnings).toEqual([{ error: expect.stringContaining("denied the request") }]);
});
