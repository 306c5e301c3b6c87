// Whoever may write ConfigMaps beside the runtime, and would have it run code of theirs.
import { expect, test, vi } from "vitest";
import { bundleFunction } from "../../runtime/bundle/bundle-function.ts";
import { indexConfigMap, indexData } from "../../runtime/deployed/deployed-index.ts";
import { packFunction } from "../../runtime/deployed/packed-function.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import { writeFunction } from "../tools/installation.ts";
import { configMaps, home, Site } from "./site.ts";

// Each test runs the command line, and bundles.
vi.setConfig({ testTimeout: 60_000 });

/** A packed function that is granted everything, and an index that names it alone: what an attacker would plant. */
async function forge({ account, folder }: Site, watch: object) {
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
  return { configMap, index: indexConfigMap(account, home, data) };
}

/** Tries every write on both objects, by every detour, and notes what came of each. */
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
  const site = await Site.create();
  await site.define("honest", { watch: team.watch() });
  await site.deploy();
  const verbs = ["create", "patch", "update", "delete"];
  const permissions = [{ apiGroups: [""], resources: ["configmaps", "configmaps/status"], verbs, namespaces: [home] }];
  const runtime = await site.install();
  await runtime.define("hostile", { watch: team.watch(), work: attack, spec: { permissions } });
  const innocent = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "innocent", namespace: home } };
  await admin.post(configMaps, innocent);
  await runtime.start();
  const before = await site.configMaps();
  const forged = await forge(site, team.watch());
  await admin.post(`/api/v1/namespaces/${team.name}/configmaps`, {
    metadata: { name: "a" },
    data: { forged: JSON.stringify(forged) },
  });
  const tried = () => runtime.lines.filter(({ msg }) => msg === "tried").map(({ fields }) => fields as object);
  await runtime.sees("every way was tried", () => tried().length === 21);
  const refused = { error: "ForbiddenError", refusedBy: "runtime", code: "WF_ACCESS_OWN_OBJECT" };
  expect(tried().filter((each) => !expect.objectContaining(refused).asymmetricMatch(each))).toEqual([]);
  expect(await site.configMaps()).toEqual(before);
  await team.make("b");
  await runtime.hears("honest", "Added b=1");
  expect((await runtime.status()).functions.map(({ name }) => name).sort()).toEqual(["honest", "hostile"]);
  expect(runtime.told("root")).toEqual([]);
});

test("a function that follows all Secrets is told of none of the runtime's own", async () => {
  const site = await Site.create();
  const runtime = await site.install();
  const secrets = `/api/v1/namespaces/${home}/secrets`;
  for (const name of [`${site.account}-checkpoint-0`, `${site.account}-slack`]) {
    await admin.post(secrets, { metadata: { name, labels: { of: site.account } }, data: {} });
  }
  const labelSelector = { matchLabels: { of: site.account } };
  await runtime.define("all", { watch: { apiVersion: "v1", kind: "Secret", labelSelector } });
  const namespaceSelector = { matchNames: [home] };
  await runtime.define("here", { watch: { apiVersion: "v1", kind: "Secret", labelSelector, namespaceSelector } });
  await runtime.start();
  await admin.patch(`${secrets}/${site.account}-checkpoint-0`, { data: { x: "AA==" } });
  await admin.patch(`${secrets}/${site.account}-slack`, { data: { v: "AA==" } });
  for (const name of ["all", "here"]) {
    await runtime.hears(name, `Modified ${site.account}-slack=AA==`);
    expect(runtime.told(name).filter((line) => line.includes("checkpoint"))).toEqual([]);
  }
});
