// Resources that a runtime may not read or that do not exist, and its behaviour when that changes.
import { expect, inject, onTestFinished, test } from "vitest";
import { admin, asServiceAccount, eventually, gone, removeAtEnd } from "../../target/fixture.ts";
import { Installation } from "../../tools/installation.ts";
import { Team } from "../../tools/team.ts";

const { url, ca, token: adminToken } = inject("shared").access;

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const rbac = "/apis/rbac.authorization.k8s.io/v1";

/** Wait of a source for a missing kind, in milliseconds. No other wait has this length. */
const missingWait = [3_000, 4_000] as const;

/** A runtime that ends with the test. */
async function install(token = adminToken): Promise<Installation> {
  const made = await Installation.on({ server: url, ca, token });
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

async function createTeam(): Promise<Team> {
  const team = await Team.create(admin);
  removeAtEnd(`/api/v1/namespaces/${team.name}`);
  return team;
}

/** A definition of Widgets in an API group that only this test uses. */
function widgets(group: string): object {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}

test("a kind that is not installed holds nobody up; it is watched once installed, and when removed and made again", async () => {
  const team = await createTeam();
  const runtime = await install();
  const group = `${team.name}.example.com`;
  const path = `/apis/${group}/v1/namespaces/${team.name}/widgets`;
  const widget = (v: number) => ({ apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "a" }, spec: { v } });
  const make = (v: number) =>
    runtime.sees(
      "the kind is served",
      async () => (await admin.reply("POST", path, { body: widget(v) })).status === 201,
    );
  /** The source asks every 3 to 4 s; the test skips these waits as often as necessary. */
  const hears = (line: string) =>
    runtime.sees(`it is told ${line}`, () => {
      runtime.clock.cutShort(...missingWait);
      return runtime.told("widgets").some((told) => told.startsWith(line));
    });

  await runtime.define("widgets", { watch: { apiVersion: `${group}/v1`, kind: "Widget" } });
  await runtime.define("others", { watch: team.watch() });
  await runtime.start();
  await team.make("b");
  await runtime.hears("others", "Added b=1");
  expect(await runtime.function("widgets")).toMatchObject({
    ready: false,
    reason: "KindMissing",
    message: expect.stringContaining(`${group}/v1`),
    triggers: [{ apiVersion: `${group}/v1`, kind: "Widget", state: "missing" }],
  });
  expect(await runtime.metric("watchfire_source_state", { kind: "Widget", state: "missing" })).toBe(1);

  await admin.post(definitions, widgets(group));
  removeAtEnd(`${definitions}/widgets.${group}`);
  await make(1);
  await hears("Added a=1");
  expect(runtime.told("widgets")).toEqual([expect.stringMatching(/^Added a=1/)]);
  expect(await runtime.function("widgets")).toMatchObject({ ready: true });
  expect((await runtime.function("widgets"))?.reason).toBeUndefined();

  await admin.delete(`${definitions}/widgets.${group}`);
  await runtime.sees("it is missing again", async () => (await runtime.sources("Widget"))[0]?.state === "missing");
  await gone(`${definitions}/widgets.${group}`);
  await admin.post(definitions, widgets(group));
  await make(2);
  await hears("Added a=2");
  await runtime.quiet();
  expect(runtime.told("widgets").slice(1)).toEqual([
    expect.stringMatching(/^Deleted a=1/),
    expect.stringMatching(/^Added a=2/),
  ]);
});

/** A ServiceAccount with its token, and a switch of its right to list and watch ConfigMaps. */
async function account(team: Team) {
  const namespace = `/api/v1/namespaces/${team.name}`;
  const roles = `${rbac}/namespaces/${team.name}`;
  await admin.post(`${namespace}/serviceaccounts`, { metadata: { name: "watcher" } });
  const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }];
  await admin.post(`${roles}/roles`, { metadata: { name: "watch" }, rules });
  const client = await asServiceAccount(team.name, "watcher");
  /** An API server sees a binding a moment later. */
  const allowed = (yes: boolean) =>
    eventually(
      () => client.reply("GET", team.path),
      ({ status }) => (status === 200) === yes,
    );
  return {
    token: client.access.token,
    grant: async () => {
      await admin.post(`${roles}/rolebindings`, {
        metadata: { name: "watch" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "watch" },
        subjects: [{ kind: "ServiceAccount", name: "watcher", namespace: team.name }],
      });
      await allowed(true);
    },
    revoke: async () => {
      await admin.delete(`${roles}/rolebindings/watch`);
      await allowed(false);
    },
  };
}

test("a right that is missing, granted, revoked and granted again: said by name, no deletion made up, no restart needed", async () => {
  const team = await createTeam();
  const watcher = await account(team);
  const runtime = await install(watcher.token);
  for (const name of ["a", "b"]) await team.make(name);
  await runtime.define("follower", { watch: team.watch() });
  const said = async () => (await runtime.function("follower"))?.message ?? "";

  await runtime.start();
  await runtime.sees("it is forbidden", async () => (await runtime.function("follower"))?.reason === "Forbidden");
  expect(await said()).toMatch(/cannot (list|watch) resource "configmaps" in API group "" in the namespace "team-/);
  expect(await said()).toContain(`system:serviceaccount:${team.name}:watcher`);
  expect(await runtime.metric("watchfire_source_state", { kind: "ConfigMap", state: "forbidden" })).toBe(1);

  await watcher.grant();
  await runtime.hears("follower", 2);
  expect(await runtime.function("follower")).toMatchObject({ ready: true });

  // It takes effect with the next connection: here, after a restart.
  await watcher.revoke();
  await runtime.quiet();
  const lists = runtime.transport.lists(team.path);
  await runtime.kill();
  await team.remove("b");
  await runtime.start();
  await runtime.sees("it is forbidden", async () => (await runtime.function("follower"))?.reason === "Forbidden");
  const refusals = () => runtime.metric("watchfire_watch_reconnects_total", { cause: "http_403" });
  await runtime.sees("it is refused again", async () => (await refusals()) >= 2);
  expect(runtime.told("follower")).toEqual(["Added a=1 initial", "Added b=1 initial"]);

  await watcher.grant();
  await runtime.hears("follower", "Deleted b=1");
  await runtime.quiet();
  expect(runtime.told("follower")).toHaveLength(3);
  expect(runtime.transport.lists(team.path)).toBe(lists);
});
