import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test, vi } from "vitest";
import { ApiError } from "../../runtime/kube/api-error.ts";
import { admin, cluster, createTeam } from "../scenarios/cluster.ts";
import type { Installation } from "../tools/installation.ts";
import { CatalogFixture, configMaps } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 60_000 });

const say = (word: string) => `ctx.log.info("said", { line: "${word}" });`;

/** Removes the right to list and watch ConfigMaps. Returns a function that restores it. */
function forbidConfigMaps({ transport }: Installation): () => void {
  const request = transport.request.bind(transport);
  const forbidden = { status: 403, reason: "Forbidden", message: 'configmaps is forbidden: "list", "watch"' };
  transport.request = async (asked) => {
    if (asked.path === configMaps) throw new ApiError(forbidden);
    return request(asked);
  };
  return () => {
    transport.request = request;
  };
}

test("what is deployed runs without a restart, and changed code takes its place", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await runtime.start();
  await fixture.define("greet", { watch: team.watch(), work: say("one") });
  expect(await fixture.deploy()).toEqual({ greet: "created" });
  await team.make("a");
  await runtime.hears("greet", 1);
  await fixture.define("greet", { watch: team.watch(), work: say("two") });
  expect(await fixture.deploy()).toEqual({ greet: "changed" });
  await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  await team.set("a", 2);
  await runtime.hears("greet", 2);
  const said = () => runtime.lines.filter(({ msg }) => msg === "said").map(({ fields }) => fields?.line);
  await runtime.sees("both spoke", () => said().length === 2);
  expect(said()).toEqual(["one", "two"]);
});

test("deployed functions run again after a restart, and remember their positions", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", 1);
  await runtime.quiet();
  await runtime.kill();
  await team.set("a", 2);
  await runtime.start();
  await runtime.hears("greet", 2);
  expect(runtime.told("greet")).toEqual(["Added a=1", "Modified a=2"]);
});

test("of one name the deployed function runs, and the log says once that it hides the folder's", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await runtime.define("greet", { watch: team.watch(), work: say("folder") });
  await fixture.define("greet", { watch: team.watch(), work: say("deployed") });
  await fixture.deploy();
  await runtime.start();
  await runtime.reload();
  await team.make("a");
  await runtime.hears("greet", 1);
  await runtime.sees("it spoke", () => runtime.lines.some(({ msg }) => msg === "said"));
  expect(runtime.lines.filter(({ msg }) => msg === "said").map(({ fields }) => fields?.line)).toEqual(["deployed"]);
  const hidden = runtime.lines.filter(({ msg }) => msg === "deployed function runs instead of the folder's");
  expect(hidden.map((line) => line.function)).toEqual(["greet"]);
});

test("a function that is deployed no more ends, and its positions are retired", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.define("stays", { watch: team.watch() });
  await fixture.deploy();
  await runtime.start();
  await fixture.remove("greet");
  await fixture.deploy("--yes");
  await runtime.sees("it is gone", async () => (await runtime.function("greet")) === undefined);
  await team.make("a");
  await runtime.hears("stays", 1);
  expect(runtime.told("greet")).toEqual([]);
});

test("a set of which a part is missing is not taken up, and what runs goes on", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  await runtime.start();
  await fixture.setIndex({
    version: 1,
    functions: [{ name: "other", configMap: `${fixture.account}-other-0000`, sha256: "0".repeat(64) }],
  });
  await runtime.sees("the set is refused", async () => (await runtime.status()).deployment !== undefined);
  expect((await runtime.status()).deployment).toMatchObject({
    reason: "WF_DEPLOYED_DAMAGED",
    message: expect.stringContaining(`${fixture.account}-other-0000`),
  });
  expect(runtime.lines.filter(({ msg }) => msg === "deployment not loaded")).toHaveLength(1);
  await team.make("a");
  await runtime.hears("greet", 1);
  expect(await runtime.function("other")).toBeUndefined();
});

test("at a start each deployed function stands alone: one whose ConfigMap is gone is named, and the others run", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("lost", { watch: team.watch() });
  await fixture.define("stays", { watch: team.watch() });
  await fixture.deploy();
  await admin.delete(`${configMaps}/${(await fixture.configMapOf("lost")).metadata.name}`);
  const runtime = await fixture.install();
  await runtime.start();
  expect((await runtime.function("lost"))?.code).toBe("WF_DEPLOYED_DAMAGED");
  expect((await runtime.function("stays"))?.ready).toBe(true);
  expect(await fixture.deploy()).toEqual({ lost: "restored", stays: "unchanged" });
  await runtime.sees("the lost one runs", async () => (await runtime.function("lost"))?.ready === true);
});

test("a runtime that may not read its ConfigMaps retires nothing, and runs the deployed again once it may", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", 1);
  await runtime.quiet();
  await runtime.kill();
  const allow = forbidConfigMaps(runtime);
  await runtime.open();
  await runtime.sees(
    "its source says why",
    async () => (await runtime.sources("ConfigMap"))[0]?.state !== "discovering",
  );
  const forbidden = { reason: "WF_KUBE_FORBIDDEN", message: expect.stringContaining("the deployed functions") };
  expect(await runtime.status()).toMatchObject({ functions: [], deployment: forbidden });
  const unready = await fetch(`${runtime.url}/readyz`);
  expect([unready.status, await unready.text()]).toEqual([
    503,
    expect.stringMatching(/^not ready: WF_KUBE_FORBIDDEN: .*\n$/),
  ]);
  // By now, checkpoints of retired functions would be deleted.
  runtime.clock.now = () => Date.now() + 8 * 24 * 3_600_000;
  allow();
  await runtime.sees("waits are cut short", () => runtime.clock.cutShort(1_000, 400_000) > 0);
  await runtime.sees("it runs", async () => (await runtime.function("greet"))?.ready === true);
  expect((await runtime.status()).deployment).toBeUndefined();
  expect((await fetch(`${runtime.url}/readyz`)).status).toBe(200);
  await team.set("a", 2);
  await runtime.hears("greet", 2);
  expect(runtime.told("greet")).toEqual(["Added a=1", "Modified a=2"]);
});

test("a runtime that loses the right to read its ConfigMaps says so, runs on and stays ready", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  forbidConfigMaps(runtime);
  await runtime.moveTo({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  await runtime.sees("it says so", async () => (await runtime.status()).deployment !== undefined);
  expect((await fetch(`${runtime.url}/readyz`)).status).toBe(200);
  await team.make("a");
  await runtime.hears("greet", 1);
});

test("a ConfigMap that does not hold what the index says is not run", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const { metadata, data, binaryData } = await fixture.configMapOf("greet");
  await admin.delete(`${configMaps}/${metadata.name}`);
  const evil = { ...binaryData, "handler.js.gz": gzipSync("__watchfire_accept(() => {});").toString("base64") };
  const forged = { metadata: { name: metadata.name, labels: metadata.labels }, data, binaryData: evil };
  await admin.post(configMaps, forged);
  const runtime = await fixture.install();
  await runtime.open();
  await runtime.sees("it is refused", async () => (await runtime.function("greet")) !== undefined);
  expect((await fetch(`${runtime.url}/readyz`)).status).toBe(503);
  const report = await runtime.function("greet");
  expect([report?.code, report?.message]).toEqual([
    "WF_DEPLOYED_DAMAGED",
    expect.stringContaining("does not hold what was deployed"),
  ]);
  expect(await fixture.deploy()).toEqual({ greet: "restored" });
  await runtime.sees("it runs", async () => (await runtime.function("greet"))?.ready === true);
});

test("a deployed manifest that this runtime refuses leaves the version before running", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  const { metadata, data, binaryData } = await fixture.configMapOf("greet");
  const manifest = data["function.yaml"].replace('"triggers"', '"tomorrow": 1, "triggers"');
  const plain = (key: string) => gunzipSync(Buffer.from(binaryData[key], "base64"));
  const parts = [Buffer.from(manifest), plain("handler.js.gz"), plain("handler.js.map.gz")];
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  const name = `${fixture.account}-greet-newer`;
  await admin.post(configMaps, {
    metadata: { name, labels: metadata.labels },
    data: { "function.yaml": manifest },
    binaryData,
  });
  await fixture.setIndex({ version: 1, functions: [{ name: "greet", configMap: name, sha256: hash.digest("hex") }] });
  await runtime.sees(
    "it is refused",
    async () => (await runtime.function("greet"))?.code === "WF_MANIFEST_UNKNOWN_FIELD",
  );
  await team.make("a");
  await runtime.hears("greet", 1);
});

test("an index or a ConfigMap that is damaged or gone shows in /status until it is mended, and what runs goes on", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  const deployment = async () => (await runtime.status()).deployment;
  expect(await deployment()).toBeUndefined();
  const index = await fixture.index();
  for (const damage of [() => fixture.setIndex([]), () => admin.delete(fixture.indexPath)]) {
    await damage();
    await runtime.sees("it shows", async () => (await deployment())?.reason === "WF_DEPLOYED_INDEX");
    expect(await deployment()).toMatchObject({ message: expect.stringContaining(`${fixture.account}-functions`) });
    expect((await fetch(`${runtime.url}/readyz`)).status).toBe(200);
    expect((await runtime.function("greet"))?.ready).toBe(true);
    await fixture.makeIndex(index);
    await runtime.sees("it is mended", async () => (await deployment()) === undefined);
  }
  await admin.delete(`${configMaps}/${index.functions[0]?.configMap}`);
  await runtime.sees("it shows", async () => (await deployment())?.reason === "WF_DEPLOYED_DAMAGED");
  await team.make("a");
  await runtime.hears("greet", 1);
  expect(await fixture.deploy()).toEqual({ greet: "restored" });
  await runtime.sees("it is mended", async () => (await deployment()) === undefined);
});

test("a runtime that starts without an index runs nothing, says why, and is ready once there is one", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const index = await fixture.index();
  await admin.delete(fixture.indexPath);
  const runtime = await fixture.install();
  await runtime.open();
  const reason = async () => (await runtime.status()).deployment?.reason;
  await runtime.sees("it says why", async () => (await reason()) === "WF_DEPLOYED_INDEX");
  expect((await runtime.status()).functions).toEqual([]);
  expect((await fetch(`${runtime.url}/readyz`)).status).toBe(503);
  await fixture.makeIndex(index);
  await runtime.sees("it runs", async () => (await runtime.function("greet"))?.ready === true);
  expect([(await fetch(`${runtime.url}/readyz`)).status, await reason()]).toEqual([200, undefined]);
});

test("with all that was deployed deleted, nothing of it runs", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch() });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  await admin.delete(configMaps, undefined, { labelSelector: fixture.selector });
  await runtime.sees("it is gone", async () => (await runtime.status()).functions.length === 0);
});
