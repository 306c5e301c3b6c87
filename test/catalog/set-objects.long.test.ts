// The object FunctionSet: what it shows of a deployed set, and its lever `spec.paused`.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { admin, createTeam } from "../scenarios/cluster.ts";
import type { Body } from "../target/client.ts";
import type { Installation } from "../tools/installation.ts";
import { until } from "../tools/until.ts";
import { CatalogFixture, home } from "./fixture.ts";

vi.setConfig({ testTimeout: 120_000 });

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const objects = `/apis/watchfire.dev/v1alpha1/namespaces/${home}`;
const setPath = (set: string) => `${objects}/functionsets/${set}`;

const define = async (plural: string) => {
  const file = join(import.meta.dirname, `../../deploy/chart/files/${plural}.watchfire.dev.yaml`);
  await admin.post(definitions, parse(await readFile(file, "utf8")));
};

/** Waits until an object is as it should be, with the waits between rounds cut short. */
async function shows(runtime: Installation, path: string, is: (object: Body) => boolean): Promise<Body> {
  let last: Body | undefined;
  await runtime.sees(`${path} is as it should be`, async () => {
    runtime.clock.cutShort(5_000, 60_001);
    const { status, body } = await admin.reply("GET", path);
    last = body as Body;
    return status === 200 && is(last);
  });
  return last as Body;
}

const conditionsOf = ({ status }: Body): Record<string, string> =>
  Object.fromEntries(status.conditions.map(({ type, status, reason }: Body) => [type, `${status} ${reason}`]));

beforeAll(() => define("functions"));

test("without its definition functions run and are shown; the object comes when the definition does", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("early", { watch: team.watch() });
  await fixture.deploy("--set", "early");
  const runtime = await fixture.install({ functionStatus: true });
  await runtime.start();
  await team.make("a");
  await runtime.hears("early", 1);
  await shows(runtime, `${objects}/functions/early`, ({ status }) => status?.lastEvent !== undefined);
  const warned = () => runtime.lines.filter(({ msg }) => msg === "set status not published");
  await runtime.sees("it warns once", () => warned().length === 1);
  expect(warned()[0]?.error).toMatch(/functionsets\.watchfire\.dev is not installed; .*crds\.enabled=true/);
  await define("functionsets");
  await shows(runtime, setPath("early"), ({ status }) => status?.ready === "1/1");
  await admin.patch(setPath("early"), { spec: { paused: true } });
  await runtime.sees("it is paused", async () => (await runtime.function("early"))?.paused === "set");
  expect(warned()).toHaveLength(1);
});

test("the object shows the revision that runs, its functions, and why one does not run", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.define("wave", { watch: team.watch() });
  await fixture.deploy("--set", "shown", "-m", "first");
  const runtime = await fixture.install({ functionStatus: true });
  await runtime.start();
  const shown = await shows(runtime, setPath("shown"), ({ status }) => status?.ready === "2/2" && status.deployedBy);
  expect(shown.spec).toEqual({ runtime: fixture.account });
  expect(conditionsOf(shown)).toEqual({ Ready: "True Running", Deployed: "True Deployed", Paused: "False NotPaused" });
  expect(shown.status).toMatchObject({
    revision: 1,
    deployedBy: "kubernetes-admin",
    deployedAt: expect.any(String),
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    counts: { functions: 2, ready: 2, failing: 0, deadLetters: 0 },
    functions: [
      { name: "greet", state: "Ready" },
      { name: "wave", state: "Ready" },
    ],
  });
  const { spec } = await shows(runtime, `${objects}/functions/greet`, ({ spec }) => spec.source.configMap.by);
  expect(spec.source.configMap).toMatchObject({ set: "shown", revision: 1, by: "kubernetes-admin" });

  await fixture.define("greet", { watch: team.watch(), work: "void 0;" });
  const secretKeyRef = { name: "missing", key: "token" };
  await fixture.define("lacks", {
    watch: team.watch(),
    spec: { env: [{ name: "TOKEN", valueFrom: { secretKeyRef } }] },
  });
  await fixture.deploy("--set", "shown");
  const failing = await shows(
    runtime,
    setPath("shown"),
    ({ status }) => status.revision === 2 && status.ready === "2/3",
  );
  expect(failing.status).toMatchObject({
    reason: "EnvironmentMissing",
    counts: { failing: 1 },
    message: "lacks: EnvironmentMissing",
  });
  expect(failing.status.functions[0]).toEqual({ name: "lacks", state: "EnvironmentMissing" });

  await admin.patch(`/api/v1/namespaces/${home}/configmaps/${fixture.account}-functions.shown`, {
    data: { "functions.json": "no JSON" },
  });
  const damaged = await shows(runtime, setPath("shown"), ({ status }) => status.reason === "DeploymentDamaged");
  expect(conditionsOf(damaged)).toMatchObject({ Deployed: "False DeploymentDamaged" });
  expect(damaged.status).toMatchObject({ revision: 2, message: expect.stringMatching(/^WF_DEPLOYED_/) });
});

test("a set that is paused by its object begins nothing, also after a restart, until the object is changed or deleted", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("held", { watch: team.watch() });
  await fixture.define("other", { watch: team.watch() });
  await fixture.deploy("--set", "paused");
  const runtime = await fixture.install({ functionStatus: true });
  await runtime.start();
  await shows(runtime, setPath("paused"), ({ status }) => status?.ready === "2/2");
  const isPaused = (by: string | undefined) => async () => {
    const reports = [await runtime.function("held"), await runtime.function("other")];
    return reports.every((report) => report !== undefined && report.paused === by);
  };
  await admin.patch(setPath("paused"), { spec: { paused: true } });
  await runtime.sees("both are paused by the set", isPaused("set"));
  expect(await runtime.function("held")).toMatchObject({
    reason: "Paused",
    message: expect.stringContaining("the FunctionSet paused says `paused: true`"),
  });
  const shown = await shows(runtime, setPath("paused"), ({ status }) => status.reason === "Paused");
  expect(conditionsOf(shown)).toMatchObject({ Ready: "False Paused", Paused: "True SpecPaused" });
  expect(shown.status).toMatchObject({ observedGeneration: shown.metadata.generation, counts: { failing: 0 } });
  expect(shown.spec).toEqual({ runtime: fixture.account, paused: true });
  await team.make("a");
  await runtime.kill();
  await team.make("b");
  await runtime.open();
  await runtime.sees("both are paused after the restart", isPaused("set"));
  await fixture.define("held", { watch: team.watch(), work: "void 0;" });
  await fixture.deploy("--set", "paused");
  await shows(runtime, setPath("paused"), ({ status }) => status.revision === 2);
  await runtime.sees("a new revision is paused", isPaused("set"));
  expect([runtime.told("held"), runtime.told("other")]).toEqual([[], []]);

  await admin.patch(setPath("paused"), { spec: { paused: false } });
  await runtime.hears("held", 2);
  await runtime.hears("other", 2);

  await admin.patch(setPath("paused"), { spec: { paused: true } });
  await runtime.sees("both are paused again", isPaused("set"));
  await team.make("c");
  await admin.delete(setPath("paused"));
  await runtime.hears("held", 3);
  const again = await shows(runtime, setPath("paused"), ({ status }) => status?.ready === "2/2");
  expect(again.spec).toEqual({ runtime: fixture.account });
});

test("the object of a set that is undeployed is deleted", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("brief", { watch: team.watch() });
  await fixture.deploy("--set", "brief");
  const runtime = await fixture.install({ functionStatus: true });
  await runtime.start();
  await shows(runtime, setPath("brief"), ({ status }) => status?.ready === "1/1");
  expect((await fixture.run("undeploy", "--set", "brief", "--yes")).status).toBe(0);
  await until("it is gone", 60_000, async () => {
    // A round that failed waits longer.
    runtime.clock.cutShort(5_000, 60_001);
    return (await admin.reply("GET", setPath("brief"))).status === 404;
  });
});
