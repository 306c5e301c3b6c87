// `ctx.cache` of a whole runtime on an API server: what a handler sees in it, and what delays the start of a function.
import { expect, inject, onTestFinished, test } from "vitest";
import type { RuntimeOptions } from "../../runtime/host/components.ts";
import { Client } from "../target/client.ts";
import { unique } from "../target/fixture.ts";
import { Installation } from "../tools/installation.ts";
import { Team } from "../tools/team.ts";

const { access } = inject("shared");
const admin = new Client(access);

async function install(more: Partial<RuntimeOptions> = {}): Promise<Installation> {
  const made = await Installation.on({ server: access.url, ca: access.ca, token: access.token }, undefined, more);
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

const configMaps = { apiVersion: "v1", kind: "ConfigMap" };
const readsOf = (team: Team, more: object = {}) => [
  {
    ...configMaps,
    namespaceSelector: { matchNames: [team.name] },
    fieldSelector: "metadata.name!=kube-root-ca.crt",
    ...more,
  },
];
/** Logs the result of a lookup, or its error, as the handler's line. */
const shows = (look: string) => `
  let line;
  try { line = JSON.stringify(${look}); } catch (error) { line = error.name + ": " + error.message; }
  ctx.log.info("told", { line });`;

test("a handler sees its own event and the other objects, by name, label and index, without a call", async () => {
  const team = await Team.create(admin);
  await team.make("a", "red", { tier: "one" });
  await team.make("b", "blue", { tier: "two" });
  await team.make("c", "red", { tier: "two" });
  const runtime = await install();
  const kind = JSON.stringify(configMaps);
  const look = `{
    own: ctx.cache.get({ ...kind, namespace, name: event.object.metadata.name })?.metadata.resourceVersion >= event.resourceVersion,
    all: names({}), two: names({ labelSelector: "tier=two" }), red: names({ index: { byValue: "red" } }),
    twoRed: names({ labelSelector: "tier in (two)", index: { byValue: "red" } }), none: ctx.cache.get({ ...kind, namespace, name: "x" }) ?? "nothing",
    age: ctx.cache.age(kind).ageMs < 60_000,
  }`;
  await runtime.define("f", {
    watch: team.watch(),
    spec: { reads: readsOf(team, { indexes: [{ name: "byValue", field: ".data.v" }] }) },
    work: `const kind = ${kind}; const { namespace } = event.object.metadata;
      const names = (query) => ctx.cache.list({ ...kind, namespace, ...query }).items.map((one) => one.metadata.name).sort().join("");
      ${shows(look)}`,
  });
  await runtime.start();
  const seen = { own: true, all: "abc", two: "bc", red: "ac", twoRed: "c", none: "nothing", age: true };
  await runtime.hears("f", JSON.stringify(seen));
  await team.make("d", "red", { tier: "two" });
  await runtime.hears("f", JSON.stringify({ ...seen, all: "abcd", two: "bcd", red: "acd", twoRed: "cd" }));
  await team.remove("a");
  await runtime.hears("f", JSON.stringify({ ...seen, own: false, all: "bcd", two: "bcd", red: "cd", twoRed: "cd" }));
  const { requests } = runtime.transport;
  expect(requests.filter(({ path }) => path.startsWith(`${team.path}/`))).toEqual([]);
  expect(runtime.transport.lists(team.path)).toBe(1);
  // Both use one watch.
  expect((await runtime.sources("ConfigMap")).map(({ subscribers }) => subscribers)).toEqual([2]);
  expect((await runtime.function("f"))?.reads).toMatchObject([
    { kind: "ConfigMap", state: "watching", ready: true, objects: 3 },
  ]);
});

test("what `reads` does not name is refused, with a code and what to add", async () => {
  const team = await Team.create(admin);
  await team.make("a");
  const runtime = await install();
  await runtime.define("nothing", {
    watch: team.watch(),
    work: shows("ctx.cache.list({ apiVersion: 'v1', kind: 'Secret' })"),
  });
  await runtime.define("elsewhere", {
    watch: team.watch(),
    spec: { reads: readsOf(team) },
    work: shows(`ctx.cache.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system' })`),
  });
  await runtime.start();
  for (const name of ["nothing", "elsewhere"]) {
    await runtime.sees("a refusal", () =>
      runtime.told(name).some((line) => /^ForbiddenError: WF_READS_UNDECLARED: .*`reads`/.test(line)),
    );
  }
});

test("a kind that is not installed is empty and said to be so, and is full once it is", async () => {
  const team = await Team.create(admin);
  await team.make("a");
  const group = `${unique("g")}.example`;
  const runtime = await install();
  await runtime.define("f", {
    watch: team.watch(),
    spec: { reads: [{ apiVersion: `${group}/v1`, kind: "Shop" }] },
    work: shows(`ctx.cache.list({ apiVersion: '${group}/v1', kind: 'Shop' }).items.length`),
  });
  await runtime.start();
  await runtime.hears("f", "0");
  expect(await runtime.function("f")).toMatchObject({
    ready: true,
    reason: "KindMissing",
    reads: [{ state: "missing", objects: 0 }],
  });
  const schema = { openAPIV3Schema: { type: "object" } };
  await admin.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    metadata: { name: `shops.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { kind: "Shop", plural: "shops" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  });
  onTestFinished(
    async () => void (await admin.delete(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.${group}`)),
  );
  const shops = `/apis/${group}/v1/shops`;
  await runtime.sees("the kind is served", async () => (await admin.reply("GET", shops)).status === 200);
  await admin.post(shops, { apiVersion: `${group}/v1`, kind: "Shop", metadata: { name: "one" } });
  await runtime.sees("the read has it", async () => (await runtime.function("f"))?.reads?.[0]?.objects === 1);
  await team.set("a", 2);
  await runtime.hears("f", "1");
});

test("a function whose reads are too large begins nothing and says why, and goes on once they may be that large", async () => {
  const team = await Team.create(admin);
  for (const name of ["a", "b"]) await team.make(name, "x".repeat(700_000));
  const runtime = await install();
  const define = (cache: string) =>
    runtime.define("f", {
      watch: team.watch(),
      spec: { reads: readsOf(team), resources: { cache } },
      work: shows(`ctx.cache.list(${JSON.stringify(configMaps)}).items.length`),
    });
  await define("1Mi");
  await runtime.start();
  await runtime.sees("it says why", async () => (await runtime.function("f"))?.reason === "CacheFull");
  expect(await runtime.function("f")).toMatchObject({ ready: false, code: "WF_READS_TOO_LARGE" });
  expect(runtime.told("f")).toEqual([]);
  await define("4Mi");
  await runtime.reload();
  await runtime.hears("f", "2");
  expect((await runtime.deadLetters()).length).toBe(0);
});

test("where the reads of all functions do not fit the one with most stands still and says why, and has its events once they fit", async () => {
  const [fat, lean] = [await Team.create(admin), await Team.create(admin)];
  for (const name of ["a", "b"]) await fat.make(name, "x".repeat(600_000));
  await lean.make("a");
  const runtime = await install({ cacheLimit: 2 ** 21 });
  const define = (name: string, team: Team, cache = "64Mi") =>
    runtime.define(name, {
      watch: team.watch(),
      spec: { reads: readsOf(team), resources: { cache } },
      work: shows(`ctx.cache.list(${JSON.stringify(configMaps)}).items.length`),
    });
  await define("hog", fat);
  await define("innocent", lean);
  await runtime.start();
  await runtime.hears("hog", "2");
  await lean.make("b", "x".repeat(950_000));
  await runtime.hears("innocent", "2");
  await runtime.sees("it says why", async () => (await runtime.function("hog"))?.code === "WF_READS_SHARE");
  expect(await runtime.function("hog")).toMatchObject({ ready: false, reason: "CacheFull" });
  expect(await runtime.function("innocent")).toMatchObject({ ready: true });
  await fat.make("c");
  await runtime.sees("explain says it", async () =>
    JSON.stringify(await runtime.explain("hog", fat.name, "c")).includes("WF_READS_SHARE"),
  );
  expect(runtime.told("hog")).not.toContain("3");
  await lean.remove("b");
  // A manifest that changed is tried at once.
  await define("hog", fat, "32Mi");
  await runtime.reload();
  await runtime.hears("hog", "3");
  expect(await runtime.function("innocent")).toMatchObject({ ready: true });
  expect((await runtime.deadLetters()).length).toBe(0);
});
