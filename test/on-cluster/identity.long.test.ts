// Functions with their own accounts: an account without some right, and a watch whose right is revoked.
import { expect, inject, onTestFinished, test } from "vitest";
import type { LoadedFunctions } from "../../runtime/manifest/load.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { builtInKinds } from "../../runtime/rbac/kinds.ts";
import { functionObjects, type RbacObject, rbacObjects } from "../../runtime/rbac/objects.ts";
import { admin, createNamespace, eventually, removeAtEnd } from "../target/fixture.ts";
import { type FunctionFiles, Installation } from "../tools/installation.ts";
import { Team } from "../tools/team.ts";

const { url, ca, token: adminToken } = inject("shared").access;
const account = "watchfire";
/** Intervals of the checks of a waiting function, a running one and a running watch, in milliseconds. */
const looks = [8_000, 10_001] as const;

const pathOf = ({ apiVersion, kind, metadata }: RbacObject, name = "") => {
  const scope = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${root}${scope}/${kind.toLowerCase()}s${name && `/${name}`}`;
};

async function create(objects: readonly RbacObject[]): Promise<void> {
  for (const object of objects) {
    await admin.post(pathOf(object), object);
    if (object.metadata.namespace === undefined) removeAtEnd(pathOf(object, object.metadata.name));
  }
}

async function remove(objects: readonly RbacObject[]): Promise<void> {
  for (const object of objects) await admin.delete(pathOf(object, object.metadata.name));
}

/** A runtime whose function `tag` receives ConfigMaps of one namespace and annotates one in another. */
async function install(token = adminToken) {
  const [namespace, from, to] = await Promise.all([createNamespace(), Team.create(admin), Team.create(admin)]);
  for (const { name } of [from, to]) removeAtEnd(`/api/v1/namespaces/${name}`);
  await to.make("target");
  const runtime = await Installation.on({ server: url, ca, token }, { namespace, account });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.define("tag", {
    watch: from.watch(),
    spec: {
      permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["patch"], namespaces: [to.name] }],
      delivery: { retry: { maxAttempts: 2, initialDelay: "10m", maxDelay: "10m", factor: 1 } },
    },
    work: `
      const ref = { apiVersion: "v1", kind: "ConfigMap", name: "target", namespace: "${to.name}" };
      await ctx.kube.patch(ref, { data: { last: event.object.metadata.name } });
      ctx.log.info("done");`,
  });
  const { functions }: LoadedFunctions = await loadFunctions(runtime.functions);
  const options = { namespace, account };
  const target = async () => (await admin.get(`${to.path}/target`)).data.last as string | undefined;
  const report = () => runtime.function("tag");
  /**
   * Waits until a check is complete and no other has begun, so that only the test's next check finds what it removes.
   */
  const ready = () =>
    runtime.sees("it is ready", async () => {
      const isReady = (await report())?.ready ?? false;
      if (!isReady) runtime.clock.cutShort(...looks);
      return isReady;
    });
  const look = () => runtime.sees("it looks", () => runtime.clock.cutShort(...looks) > 0);
  return { runtime, namespace, from, to, functions, options, target, report, ready, look };
}

const kindsOf = (objects: readonly RbacObject[], kind: string) => objects.filter((each) => each.kind === kind);

test("a function waits for its account and its grants, says which is missing, and then runs without a restart", async () => {
  const { runtime, namespace, from, to, functions, options, target, report, look, ready } = await install();
  const objects = functions.flatMap((manifest) => functionObjects(manifest, builtInKinds, options));
  await from.make("a");
  await runtime.open();
  await runtime.sees("it lacks its account", async () => (await report())?.reason === "Forbidden");
  expect(await report()).toMatchObject({
    ready: false,
    message: expect.stringContaining(`there is no ServiceAccount watchfire-tag in namespace ${namespace}`),
  });

  await create(kindsOf(objects, "ServiceAccount"));
  await look();
  await runtime.sees("it lacks its grants", async () => (await report())?.message?.includes("may not") ?? false);
  expect(await report()).toMatchObject({
    ready: false,
    reason: "Forbidden",
    message: expect.stringContaining(`patch configmaps in namespace "${to.name}"`),
  });
  expect(runtime.told("tag")).toEqual([]);

  await create([...kindsOf(objects, "Role"), ...kindsOf(objects, "RoleBinding")]);
  await ready();
  await eventually(target, (last) => last === "a");
  expect((await report())?.reason).toBeUndefined();
});

test("the events of a function whose grant is revoked wait until it is back, and burn no attempts", async () => {
  const { runtime, from, functions, options, target, report, look, ready } = await install();
  const objects = functions.flatMap((manifest) => functionObjects(manifest, builtInKinds, options));
  await create(objects);
  await runtime.open();
  await ready();

  const bindings = kindsOf(objects, "RoleBinding");
  await remove(bindings);
  await runtime.sees("it is forbidden", async () => {
    await look();
    return (await report())?.reason === "Forbidden";
  });
  expect(await report()).toMatchObject({
    ready: false,
    message: expect.stringContaining("patch configmaps in namespace"),
  });
  await from.make("a");
  await runtime.sees("the event waits", async () => (await report())?.queued === 1);
  expect(runtime.told("tag")).toEqual([]);

  await create(bindings);
  await ready();
  await eventually(target, (last) => last === "a");
  expect(runtime.told("tag")).toEqual(["Added a=1"]);
});

test("the attempt that met the refusal is tried again as soon as it may, however long its retry would have waited", async () => {
  const { runtime, from, functions, options, target, report, ready } = await install();
  const objects = functions.flatMap((manifest) => functionObjects(manifest, builtInKinds, options));
  await create(objects);
  await runtime.open();
  await ready();
  const bindings = kindsOf(objects, "RoleBinding");
  await remove(bindings);
  await from.make("a");
  // Its retry would be ten minutes later. The refusal is visible before its attempt has ended, and the grant may be restored in
  // between.
  await runtime.sees("it is forbidden", async () => (await report())?.reason === "Forbidden");
  await runtime.sees("the attempt has failed", async () => (await report())?.failures === 1);
  expect(runtime.told("tag")).toEqual(["Added a=1"]);
  await create(bindings);
  await ready();
  await eventually(target, (last) => last === "a");
  expect(runtime.told("tag")).toEqual(["Added a=1", "Added a=1 redelivered #2"]);
});

test("a function that may no longer write Events is forbidden, and its events wait", async () => {
  const { runtime, from, functions, options, report, ready } = await install();
  const objects = functions.flatMap((manifest) => functionObjects(manifest, builtInKinds, options));
  await create(objects);
  await runtime.open();
  await ready();
  const ofEvents = kindsOf(objects, "RoleBinding").filter(({ metadata }) => metadata.namespace === from.name);
  await remove(ofEvents);
  await runtime.sees("it is forbidden", async () => {
    runtime.clock.cutShort(...looks);
    return (await report())?.reason === "Forbidden";
  });
  expect((await report())?.message).toContain(`may not create events in namespace "${from.name}"`);
  await from.make("a");
  await runtime.sees("the event waits", async () => (await report())?.queued === 1);
  await create(ofEvents);
  await ready();
  await runtime.hears("tag", "Added a=1");
  expect(await runtime.deadLetters()).toEqual([]);
});

test("a function that needs no rights yet is forbidden once its account is gone", async () => {
  const namespace = await createNamespace();
  const runtime = await Installation.on({ server: url, ca, token: adminToken }, { namespace, account });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.define("early", { watch: { apiVersion: "not.installed/v1", kind: "Yet" } });
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.post(accounts, { metadata: { name: "watchfire-early" } });
  const reason = async () => {
    runtime.clock.cutShort(...looks);
    return (await runtime.function("early"))?.reason;
  };
  await runtime.open();
  await runtime.sees("its kind is missing", async () => !["Starting", "Forbidden"].includes((await reason()) ?? ""));
  await admin.delete(`${accounts}/watchfire-early`);
  await runtime.sees("it is forbidden", async () => (await reason()) === "Forbidden");
  await admin.post(accounts, { metadata: { name: "watchfire-early" } });
  await runtime.sees("it lacks nothing but its kind", async () => (await reason()) !== "Forbidden");
});

/** A runtime that acts as its own account with only its rights, whose function `hear` receives ConfigMaps. */
async function installWithRights(watch: object, more: Pick<FunctionFiles, "spec" | "work"> = {}) {
  const namespace = await createNamespace();
  await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: account } });
  const runtimeToken = await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
    spec: {},
  });
  const runtime = await Installation.on({ server: url, ca, token: runtimeToken.status.token }, { namespace, account });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.define("hear", { watch, ...more });
  const { functions } = await loadFunctions(runtime.functions);
  const objects = rbacObjects(functions, builtInKinds, { namespace, account });
  await create(objects.filter(({ kind, metadata }) => kind !== "ServiceAccount" || metadata.name !== account));
  return { runtime, objects };
}

test("a function of one object by its name runs with the rights to that object alone, and its watch is never taken for revoked", async () => {
  const team = await Team.create(admin);
  const query = `{ apiVersion: "v1", kind: "ConfigMap", namespace: "${team.name}", fieldSelector: "metadata.name=one" }`;
  const watch = team.watch({ fieldSelector: "metadata.name==one" });
  const { runtime, objects } = await installWithRights(watch, {
    spec: {
      reads: [watch],
      permissions: [
        {
          apiGroups: [""],
          resources: ["configmaps"],
          verbs: ["list"],
          resourceNames: ["one"],
          namespaces: [team.name],
        },
      ],
    },
    work: `ctx.log.info("told", { line: "listed " + (await ctx.kube.list(${query})).items.map(({ metadata }) => metadata.name) });`,
  });
  const about = (verbs: string[]) => ({ apiGroups: [""], resources: ["configmaps"], resourceNames: ["one"], verbs });
  const rules = kindsOf(objects, "Role")
    .filter(({ metadata }) => metadata.namespace === team.name)
    .flatMap((role) => role.rules as { resources: string[] }[]);
  expect(rules.filter(({ resources }) => resources.includes("configmaps"))).toEqual([
    about(["list"]),
    about(["list", "watch"]),
  ]);
  for (const name of ["one", "two"]) await team.make(name);
  await runtime.start();
  await runtime.hears("hear", "Added one=1 initial");
  await runtime.hears("hear", "listed one");
  const watches = () =>
    runtime.transport.requests.filter(({ path, query: of }) => path === team.path && of?.watch !== undefined).length;
  const before = watches();
  for (const ms of [10_000, 10_000, 10_000]) {
    await runtime.sees("a look is over", () => runtime.clock.cutShort(ms, ms + 1) > 0);
  }
  expect(watches()).toBe(before);
  await team.set("two", 2);
  await team.set("one", 2);
  await runtime.hears("hear", "Modified one=2");
  expect(runtime.told("hear").filter((line) => line.includes("two"))).toEqual([]);
  expect(await runtime.explain("hear", team.name, "one")).toMatchObject({ reason: "fired" });
  expect(await runtime.explain("hear", team.name, "two")).toMatchObject({ reason: "fieldSelector" });
  await runtime.kill();
  await team.set("one", 3);
  await runtime.start();
  await runtime.hears("hear", "Modified one=3");
});

test("a function that may create one object by its name applies it under its account where it is missing, and creates no other", async () => {
  const team = await Team.create(admin);
  const copy = `{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "copy", namespace: "${team.name}" }, data: { a: "1" } }`;
  const { runtime } = await installWithRights(team.watch({ fieldSelector: "metadata.name=one" }), {
    spec: {
      permissions: [
        {
          apiGroups: [""],
          resources: ["configmaps"],
          verbs: ["create", "patch"],
          resourceNames: ["copy"],
          namespaces: [team.name],
        },
      ],
    },
    work: `
      const applied = await ctx.kube.apply(${copy}, { force: true });
      const error = await ctx.kube.create(${copy}).catch((error) => error);
      ctx.log.info("told", { line: "applied " + applied.metadata.name + ", then " + error.name });`,
  });
  await team.make("one");
  await runtime.start();
  await runtime.hears("hear", "applied copy, then ForbiddenError");
  expect((await admin.get(`${team.path}/copy`)).data).toEqual({ a: "1" });
});

test("a namespace that is being deleted stops only what lies in it, and the end of its last object is delivered", async () => {
  const [gone, other] = await Promise.all([Team.create(admin), Team.create(admin)]);
  const watch = other.watch({ namespaceSelector: { matchNames: [gone.name, other.name] } });
  const { runtime, objects } = await installWithRights(watch);
  await gone.make("a");
  await admin.patch(`${gone.path}/a`, { metadata: { finalizers: ["test.watchfire.dev/last"] } });
  await runtime.start();
  await runtime.hears("hear", "Added a=1 initial");

  await admin.delete(`/api/v1/namespaces/${gone.name}`);
  // The namespace's controller does the same, if there is one.
  const bindings = kindsOf(objects, "RoleBinding").filter(({ metadata }) => metadata.namespace === gone.name);
  for (const each of bindings) await admin.reply("DELETE", pathOf(each, each.metadata.name));
  // The next wait of each begins when its check is complete.
  for (const ms of [8_000, 8_000, 8_000, 10_000, 10_000, 10_000]) {
    await runtime.sees("a look is over", () => runtime.clock.cutShort(ms, ms + 1) > 0);
  }
  await other.make("o");
  await runtime.hears("hear", "Added o=1");
  expect(await runtime.function("hear")).toMatchObject({ ready: true });
  await admin.reply("DELETE", `${gone.path}/a`);
  await admin.patch(`${gone.path}/a`, { metadata: { finalizers: null } });
  await runtime.sees("the deletion", () => runtime.told("hear").some((told) => told.startsWith("Deleted a=1")));
});

test("a watch that is revoked is told within one look, deletes nothing, and goes on where it was when it is granted", async () => {
  const from = await Team.create(admin);
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${from.name}`;
  const { runtime, objects } = await installWithRights(from.watch());
  await from.make("a");
  await runtime.start();
  await runtime.hears("hear", "Added a=1 initial");

  const binding = objects.find(
    ({ kind, metadata }) =>
      kind === "RoleBinding" && metadata.namespace === from.name && metadata.name.endsWith(".runtime"),
  );
  if (!binding) throw new Error("nothing binds the runtime to its watch");
  await admin.delete(`${rbac}/rolebindings/${binding.metadata.name}`);
  const source = async () => (await runtime.sources("ConfigMap"))[0];
  await runtime.sees("the source is forbidden", async () => {
    runtime.clock.cutShort(...looks);
    return (await source())?.state === "forbidden";
  });
  expect(await source()).toMatchObject({
    reason: "Forbidden",
    message: expect.stringMatching(/cannot (?:list|watch) resource "configmaps" .*in the namespace/),
  });
  await from.remove("a");
  await from.make("b");
  await create([binding]);
  await runtime.sees("it watches again", async () => {
    runtime.clock.cutShort(30_000, 60_001);
    return (await source())?.state === "watching";
  });
  await runtime.hears("hear", 3);
  expect(runtime.told("hear")).toEqual(["Added a=1 initial", expect.stringMatching(/^Deleted a=1/), "Added b=1"]);
});
