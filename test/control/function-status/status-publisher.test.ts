import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { parse } from "yaml";
import { specOf } from "../../../runtime/control/function-status/function-object.ts";
import { FunctionObjects } from "../../../runtime/control/function-status/function-objects.ts";
import { connectDirect } from "../../../runtime/kube/direct.ts";
import { admin, cluster, createTeam } from "../../scenarios/cluster.ts";
import { Installation } from "../../tools/installation.ts";

vi.setConfig({ testTimeout: 60_000 });

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const objects = "/apis/watchfire.dev/v1alpha1/namespaces/default/functions";
const definition = parse(
  await readFile(join(import.meta.dirname, "../../../deploy/chart/files/functions.watchfire.dev.yaml"), "utf8"),
);

async function install(account: string): Promise<Installation> {
  const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
  const made = await Installation.on(connection, undefined, { account, functionStatus: true });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

test("without its definition the runtime warns once and works; the objects come when the definition does", async () => {
  const team = await createTeam();
  const runtime = await install("first");
  await runtime.define("greet", { watch: team.watch() });
  await runtime.start();
  const warned = () => runtime.lines.filter(({ msg }) => msg === "function status not published");
  await runtime.sees("it warns", () => warned().length > 0);
  const tries = () => runtime.transport.requests.filter(({ path }) => path === objects).length;
  for (const waitMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
    const before = tries();
    await runtime.sees("it tries again, ever less often", () => {
      // Other waits may have the same length.
      runtime.clock.cutShort(waitMs, waitMs + 1);
      return tries() > before;
    });
  }
  await team.make("a");
  await runtime.hears("greet", 1);
  const missing = /^WF_RUNTIME_STATUS_UNWRITTEN: .*functions\.watchfire\.dev is not installed; .*crds\.enabled=true/;
  expect(warned().map(({ error }) => error)).toEqual([expect.stringMatching(missing)]);
  await admin.post(definitions, definition);
  await runtime.sees("it is kept again", () => {
    runtime.clock.cutShort(60_000, 60_001);
    return runtime.lines.some(({ msg }) => msg === "function status published again");
  });
  const { spec, status } = await admin.get(`${objects}/greet`);
  expect([spec.runtime, Object.keys(spec.source), status.conditions[0].status]).toEqual(["first", ["folder"], "True"]);
});

test("a status is written when it changes, and not otherwise", async () => {
  const team = await createTeam();
  const runtime = await install("second");
  await runtime.define("steady", {
    watch: team.watch(),
    work: "throw new Error('no');",
    spec: { delivery: { retry: { maxAttempts: 1 } } },
  });
  await runtime.start();
  const writes = () =>
    runtime.transport.requests.filter(({ method, path }) => method === "PATCH" && path.endsWith("/steady/status"));
  const rounds = async (count: number) => {
    for (let round = 0; round < count; round++) {
      await runtime.sees("a round is over", () => runtime.clock.cutShort(5_000, 5_001) > 0);
    }
  };
  await runtime.sees("it stands there", () => {
    runtime.clock.cutShort(5_000, 5_001);
    return String(writes().at(-1)?.body).includes('"type":"Watching","status":"True"');
  });
  const before = writes().length;
  await rounds(3);
  expect(writes()).toHaveLength(before);
  await team.make("a");
  await runtime.sees("its event is given up", async () => (await runtime.function("steady"))?.deadLetters === 1);
  await rounds(1);
  await runtime.sees("it is written", () => writes().length === before + 1);
  const { status } = await admin.get(`${objects}/steady`);
  expect([status.deadLetters, status.failures, status.queued]).toEqual([1, 1, 0]);
});

test("an object that somebody deletes is made again, and one that is another runtime's is left", async () => {
  const team = await createTeam();
  const runtime = await install("third");
  await admin.post(objects, {
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name: "taken", labels: { "watchfire.dev/runtime": "other" } },
    spec: { runtime: "other", source: {} },
  });
  await runtime.define("taken", { watch: team.watch() });
  await runtime.define("mine", { watch: team.watch() });
  await runtime.start();
  await runtime.sees("it is there", async () => (await admin.reply("GET", `${objects}/mine`)).status === 200);
  await admin.delete(`${objects}/mine`);
  await team.make("a");
  await runtime.hears("mine", 1);
  await runtime.sees("it is there again", async () => {
    runtime.clock.cutShort(5_000, 5_001);
    const { body } = await admin.reply("GET", `${objects}/mine`);
    return body.status?.lastEvent !== undefined;
  });
  expect((await admin.get(`${objects}/taken`)).spec.runtime).toBe("other");
  const foreign = runtime.lines.filter(({ msg }) => msg === "function status belongs to another runtime");
  expect(foreign.map(({ error }) => error)).toEqual([
    expect.stringMatching(/^WF_RUNTIME_STATUS_UNWRITTEN: the object taken belongs to another runtime/),
  ]);
});

test("of a replica that lost the Lease nothing is written, nor deleted", async () => {
  const connection = { server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
  const transport = connectDirect(connection);
  onTestFinished(() => transport.close());
  let held = true;
  const look = () => (held ? undefined : new Error("lost"));
  const kept = new FunctionObjects(transport, "default", "fourth", look);
  const spec = specOf("fourth", { type: "folder", manifest: "f.yaml" });
  const { signal } = new AbortController();
  expect(await kept.create("early", spec, signal)).toBe(true);
  held = false;
  const before = await admin.get(`${objects}/early`);
  await expect(kept.create("late", spec, signal)).rejects.toThrow("lost");
  await expect(kept.setSpec("early", specOf("other", { type: "folder", manifest: "g" }), signal)).rejects.toThrow(
    "lost",
  );
  await expect(kept.delete("early", signal)).rejects.toThrow("lost");
  expect(await admin.get(`${objects}/early`)).toEqual(before);
  expect((await admin.reply("GET", `${objects}/late`)).status).toBe(404);
});
