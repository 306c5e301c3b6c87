// An attacker may write ConfigMaps in the runtime's namespace and tries to make the runtime run their code.
import { describe, expect, test, vi } from "vitest";
import { indexConfigMap, indexData } from "../../runtime/catalog/deployed-index.ts";
import { packFunction } from "../../runtime/catalog/packed-function.ts";
import { TrustedKeys } from "../../runtime/catalog/signature.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import { bundleFunction } from "../tools/bundle.ts";
import { writeFunction } from "../tools/installation.ts";
import { CatalogFixture, configMaps, home, makeKeys } from "./fixture.ts";

// Each test runs the command line, and bundles.
vi.setConfig({ testTimeout: 60_000 });

/** A packed function with all permissions, and an index with only that function, as an attacker would write them. */
async function forge({ account, folder }: CatalogFixture, watch: object) {
  await writeFunction(`${folder}/forged`, "root", {
    watch,
    spec: { permissions: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }] },
  });
  const manifest = JSON.stringify({
    apiVersion: "watchfire.dev/v1alpha1",
    kind: "Function",
    metadata: { name: "root" },
    spec: {
      handler: "./handler.ts",
      triggers: [{ watch }],
      permissions: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }],
    },
  });
  const bundle = await bundleFunction({ name: "root", handler: `${folder}/forged/root/handler.ts` });
  const { configMap, sha256 } = packFunction("root", manifest, bundle, { account, namespace: home, root: folder });
  const data = indexData([{ name: "root", configMap: configMap.metadata.name, sha256 }]);
  return { configMap, index: indexConfigMap({ account, namespace: home, set: "default" }, data) };
}

/** Tries every write on both objects, by every detour, and records the results. */
const attack = `
  const { configMap, index } = JSON.parse(event.object.data.forged);
  const { labels, name, namespace } = configMap.metadata;
  const at = (name) => ({ apiVersion: "v1", kind: "ConfigMap", namespace, name });
  const pointer = (key) => "/metadata/labels/" + key.replaceAll("/", "~1");
  const bare = { ...configMap, metadata: { name: "innocent", namespace } };
  const { data } = index;
  const ways = {
    create: () => ctx.kube.create(configMap),
    "create, unlabelled": () => ctx.kube.create({ ...configMap, metadata: { name, namespace } }),
    "create, named otherwise": () => ctx.kube.create({ ...configMap, metadata: { ...configMap.metadata, name: "innocent" } }),
    generate: () => ctx.kube.create({ ...configMap, metadata: { generateName: "innocent-", namespace, labels } }),
    "generate, unlabelled": () => ctx.kube.create({ ...configMap, metadata: { generateName: index.metadata.name + "-", namespace } }),
    apply: () => ctx.kube.apply(configMap, { force: true }),
    "apply, named otherwise": () => ctx.kube.apply({ ...bare, metadata: { ...bare.metadata, labels } }, { force: true }),
    "label by a merge patch": () => ctx.kube.patch(at("innocent"), { metadata: { labels } }),
    "label by a strategic patch": () => ctx.kube.patch(at("innocent"), { metadata: { labels } }, { type: "strategic" }),
    "label by a JSON patch": () => ctx.kube.patch(at("innocent"), [{ op: "add", path: "/metadata/labels", value: labels }], { type: "json" }),
    "label by copying": () => ctx.kube.patch(at("innocent"), [
      { op: "add", path: "/metadata/annotations", value: labels },
      { op: "copy", from: "/metadata/annotations", path: "/metadata/labels" },
    ], { type: "json" }),
    "label one by one": () => ctx.kube.patch(at("innocent"), [
      { op: "add", path: "/metadata/labels", value: {} },
      ...Object.entries(labels).map(([key, value]) => ({ op: "add", path: pointer(key), value })),
    ], { type: "json" }),
    "apply the index": () => ctx.kube.apply(index, { force: true }),
    "apply the index, unlabelled": () => ctx.kube.apply({ ...index, metadata: { name: index.metadata.name, namespace } }, { force: true }),
    "update the index": () => ctx.kube.update(index),
    "patch the index": () => ctx.kube.patch(at(index.metadata.name), { data }),
    "patch the index strategically": () => ctx.kube.patch(at(index.metadata.name), { data }, { type: "strategic" }),
    "patch the index by JSON": () => ctx.kube.patch(at(index.metadata.name), [{ op: "replace", path: "/data", value: data }], { type: "json" }),
    "patch the index's status": () => ctx.kube.patchStatus(at(index.metadata.name), { data }),
    "delete the index": () => ctx.kube.delete(at(index.metadata.name)),
    "create the index": () => ctx.kube.create(index),
  };
  for (const [way, go] of Object.entries(ways)) {
    const { name: error, refusedBy, message } = await go().then(() => ({ name: "done" }), (thrown) => thrown);
    ctx.log.info("tried", { way, error, refusedBy, code: message?.split(":")[0] });
  }
`;

test("a function that may write ConfigMaps beside the runtime changes nothing that is deployed, and runs nothing", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("honest", { watch: team.watch() });
  await fixture.deploy();
  const verbs = ["create", "patch", "update", "delete"];
  const permissions = [{ apiGroups: [""], resources: ["configmaps", "configmaps/status"], verbs, namespaces: [home] }];
  const runtime = await fixture.install();
  await runtime.define("hostile", { watch: team.watch(), work: attack, spec: { permissions } });
  const innocent = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "innocent", namespace: home } };
  await admin.post(configMaps, innocent);
  await runtime.start();
  const before = await fixture.configMaps();
  const forged = await forge(fixture, team.watch());
  await admin.post(`/api/v1/namespaces/${team.name}/configmaps`, {
    metadata: { name: "a" },
    data: { forged: JSON.stringify(forged) },
  });
  const tried = () => runtime.lines.filter(({ msg }) => msg === "tried").map(({ fields }) => fields as object);
  await runtime.sees("every way was tried", () => tried().length === 21);
  const refused = { error: "ForbiddenError", refusedBy: "runtime", code: "WF_ACCESS_OWN_OBJECT" };
  expect(tried().filter((each) => !expect.objectContaining(refused).asymmetricMatch(each))).toEqual([]);
  expect(await fixture.configMaps()).toEqual(before);
  await team.make("b");
  await runtime.hears("honest", "Added b=1");
  expect((await runtime.status()).functions.map(({ name }) => name).sort()).toEqual(["honest", "hostile"]);
  expect(runtime.told("root")).toEqual([]);
});

test("a function that follows all Secrets is told of none of the runtime's own", async () => {
  const fixture = await CatalogFixture.create();
  const runtime = await fixture.install();
  const secrets = `/api/v1/namespaces/${home}/secrets`;
  for (const name of [`${fixture.account}-checkpoint-0`, `${fixture.account}-slack`]) {
    await admin.post(secrets, { metadata: { name, labels: { of: fixture.account } }, data: {} });
  }
  const labelSelector = { matchLabels: { of: fixture.account } };
  const spec = { permissions: [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }] };
  await runtime.define("all", { watch: { apiVersion: "v1", kind: "Secret", labelSelector }, spec });
  const namespaceSelector = { matchNames: [home] };
  await runtime.define("here", { watch: { apiVersion: "v1", kind: "Secret", labelSelector, namespaceSelector }, spec });
  await runtime.start();
  await admin.patch(`${secrets}/${fixture.account}-checkpoint-0`, { data: { x: "AA==" } });
  await admin.patch(`${secrets}/${fixture.account}-slack`, { data: { v: "AA==" } });
  for (const name of ["all", "here"]) {
    await runtime.hears(name, `Modified ${fixture.account}-slack=AA==`);
    expect(runtime.told(name).filter((line) => line.includes("checkpoint"))).toEqual([]);
  }
});

describe("with a trusted key, of somebody else who may write the ConfigMaps,", () => {
  /** A fixture with signed deployments, and a runtime that loads only signed ones. */
  async function signed() {
    const team = await createTeam();
    const fixture = await CatalogFixture.create();
    const keys = makeKeys(fixture.folder);
    const runtime = await fixture.install({ trust: TrustedKeys.read([keys.public]) });
    await fixture.define("greet", { watch: team.watch() });
    await fixture.deploy("--sign", keys.private);
    await runtime.start();
    return { team, fixture, keys, runtime };
  }

  /** Checks that the runtime reports the refusal, and that only the deployed functions run on. */
  async function expectRefused({ runtime, team }: Awaited<ReturnType<typeof signed>>, reason: string) {
    await runtime.sees("the set is refused", async () => (await runtime.status()).deployment?.reason === reason);
    const name = `b-${Math.random().toString(36).slice(2)}`;
    await team.make(name);
    await runtime.hears("greet", `Added ${name}=1`);
    const { functions, deployment } = await runtime.status();
    expect(functions.map((each) => each.name)).toEqual(["greet"]);
    expect(deployment?.message).toMatch(new RegExp(`^${reason} configmap/`));
    expect(runtime.told("root")).toEqual([]);
  }

  test("an index that nobody signed is refused whole, said in /status, and mended by the next signed deployment", async () => {
    const place = await signed();
    const { fixture, team, keys, runtime } = place;
    const { configMap, index } = await forge(fixture, team.watch());
    await admin.post(configMaps, configMap);
    await admin.apply(fixture.indexPath, index, "attacker", { force: true });
    await expectRefused(place, "WF_DEPLOYED_UNTRUSTED");
    expect(runtime.lines.filter(({ msg }) => msg === "deployment not loaded")).toHaveLength(1);
    await fixture.deploy("--sign", keys.private, "--yes");
    await runtime.sees("all is well", async () => (await runtime.status()).deployment === undefined);
  });

  test("an index without its signature is refused, and so is one that another key signed", async () => {
    const place = await signed();
    const { fixture } = place;
    await admin.patch(fixture.indexPath, { data: { "signature.json": null } });
    await expectRefused(place, "WF_DEPLOYED_UNTRUSTED");
    await fixture.deploy("--sign", makeKeys(fixture.folder).private);
    await expectRefused(place, "WF_DEPLOYED_UNTRUSTED");
  });

  test("an index that was signed for another runtime is refused", async () => {
    const place = await signed();
    const { fixture, team, keys } = place;
    const other = await CatalogFixture.create();
    await other.define("root", { watch: team.watch() });
    await other.deploy("--sign", keys.private);
    for (const { metadata, data } of await other.configMaps()) {
      if (metadata.name === `${other.account}-functions`) await admin.patch(fixture.indexPath, { data });
      else
        await admin.patch(`${configMaps}/${metadata.name}`, {
          metadata: { labels: { "watchfire.dev/runtime": fixture.account } },
        });
    }
    await expectRefused(place, "WF_DEPLOYED_UNTRUSTED");
  });

  test("an older signed set that is put back is refused, also after a restart", async () => {
    const place = await signed();
    const { fixture, team, keys, runtime } = place;
    const old = await fixture.configMaps();
    await fixture.define("greet", { watch: team.watch(), work: `ctx.log.info("mended", {});` });
    await fixture.deploy("--sign", keys.private);
    await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
    for (const { metadata, ...rest } of old) {
      if (metadata.name === `${fixture.account}-functions`) await admin.patch(fixture.indexPath, { data: rest.data });
      else await admin.post(configMaps, { ...rest, metadata: { name: metadata.name, labels: metadata.labels } });
    }
    await expectRefused(place, "WF_DEPLOYED_REPLAYED");
    await runtime.kill();
    await runtime.open();
    await runtime.sees(
      "it is refused again",
      async () => (await runtime.status()).deployment?.reason === "WF_DEPLOYED_REPLAYED",
    );
    expect((await runtime.status()).functions).toEqual([]);
    // Deploying the new code again is enough: its serial is the newest, whatever the index contains.
    await fixture.deploy("--sign", keys.private);
    await runtime.sees("all is well", async () => (await runtime.status()).deployment === undefined);
    expect((await runtime.function("greet"))?.name).toBe("greet");
  });

  test("that everything is taken away stops nothing", async () => {
    const place = await signed();
    for (const { metadata } of await place.fixture.configMaps()) await admin.delete(`${configMaps}/${metadata.name}`);
    await expectRefused(place, "WF_DEPLOYED_UNTRUSTED");
  });

  test("a deployment that is signed already is left as it is, and one without a signature is warned of", async () => {
    const { fixture, team, keys } = await signed();
    const before = await admin.get(fixture.indexPath);
    expect(await fixture.deploy("--sign", keys.private)).toEqual({ greet: "unchanged" });
    expect(await admin.get(fixture.indexPath)).toEqual(before);
    await fixture.define("greet", { watch: team.watch(), work: "await 0;" });
    const { status, stderr } = await fixture.tryDeploy();
    expect(status).toBe(0);
    expect(stderr).toContain("a runtime with --trust refuses it");
  });

  test("a runtime without a trusted key takes up what is signed and what is not", async () => {
    const { fixture, team } = await signed();
    const runtime = await fixture.install();
    await runtime.start();
    await team.make("a");
    await runtime.hears("greet", 1);
    await fixture.define("greet", { watch: team.watch(), work: "await 0;" });
    await fixture.deploy();
    await runtime.sees("the new code is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  });
});

test("a deployment warns of what reaches the runtime's own objects, and goes on", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const permissions = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"], namespaces: [home] }];
  await fixture.define("greet", { watch: team.watch(), spec: { permissions } });
  const { status, stdout, stderr } = await fixture.tryDeploy();
  expect(status).toBe(0);
  expect(stdout).toMatch(/^greet +created/);
  expect(stderr).toMatch(
    /^warning: WF_RBAC_OWN_OBJECTS \S+:1:\d+ spec\.permissions\[0\]: patch of configmaps reaches /m,
  );
});
