// The rights of functions of other namespaces' sets, which see no more than their own accounts may.
import { expect, onTestFinished, test } from "vitest";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { GrantWatch } from "../../runtime/rbac/grant-watch.ts";
import { rememberedKinds } from "../../runtime/rbac/kinds.ts";
import { apiServer, manifestOf, status } from "../access/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { trigger } from "./trigger.ts";

const everyMs = 8_000;

const follow = { apiGroups: [""], resources: ["configmaps"], verbs: ["list", "watch"] };
const events = { apiGroups: [""], resources: ["events"], verbs: ["create", "patch"] };

/** A function `f` of the namespace `team-a`, whose trigger is on ConfigMaps of `data`. */
const watcher = manifestOf({
  name: "f.team-a",
  triggers: [trigger({ namespaces: { type: "names", names: ["data"] } })],
});

async function watching(manifest = watcher) {
  const grant: { rules: object[] | undefined; account: boolean; slowMs: number } = {
    rules: [follow, events],
    account: true,
    slowMs: 0,
  };
  const clock = new VirtualClock();
  const server = await apiServer(({ path }) => {
    if (grant.slowMs > 0) void clock.advance(grant.slowMs);
    if (!grant.rules) return status(429, "TooManyRequests");
    if (path.endsWith("/token")) {
      if (!grant.account) return status(404, "NotFound");
      return { body: { spec: { expirationSeconds: 600 }, status: { token: "t" } } };
    }
    if (path === "/api/v1/namespaces/data") return status(404, "NotFound");
    if (path.endsWith("/selfsubjectrulesreviews")) return { body: { status: { resourceRules: grant.rules } } };
    return path.endsWith("/selfsubjectaccessreviews") ? { body: { status: { allowed: false } } } : undefined;
  });
  const { transport } = server;
  const excluded: string[] = [];
  const changed: string[] = [];
  const functions = new Map([[manifest.name, manifest]]);
  const grants = new GrantWatch({
    transport,
    accounts: new FunctionAccounts({ transport, namespace: "wf", account: "watchfire", clock, random: () => 0.5 }),
    functions,
    kinds: rememberedKinds(new Discovery(transport, clock)),
    clock,
    changed: (name) => changed.push(name),
    excluded: (_, fault) => excluded.push(fault.message),
    absent: (name) => changed.push(name),
  });
  onTestFinished(() => grants.close());
  const round = async () => {
    await clock.advance(everyMs);
    await expect.poll(() => clock.timers).toBe(1);
  };
  const assert = () => grants.assert(manifest, new AbortController().signal);
  const tokens = () => server.received.flatMap(({ path }) => (path.endsWith("/token") ? [path] : []));
  const questions = () => server.received.filter(({ path }) => path.endsWith("reviews")).length;
  return { grant, grants, excluded, changed, round, assert, tokens, questions };
}

test("it asks with a token of its account in its set's namespace, and of no other", async () => {
  const { assert, tokens } = await watching();
  await assert();
  expect(tokens()).toEqual(["/api/v1/namespaces/team-a/serviceaccounts/watchfire-f/token"]);
});

test.each([
  ["list", [{ ...follow, verbs: ["watch"] }, events], 'may not list configmaps in namespace "data"'],
  ["watch", [{ ...follow, verbs: ["list"] }, events], 'may not watch configmaps in namespace "data"'],
  ["list or watch by another name", [{ ...follow, resourceNames: ["one"] }, events], "may not list configmaps"],
])("it is not subscribed where its account may not %s", async (_, rules, words) => {
  const { grant, assert } = await watching();
  grant.rules = rules;
  await expect(assert()).rejects.toMatchObject({
    code: "WF_DEPLOYED_FORBIDDEN",
    message: expect.stringContaining(words),
  });
});

test("what it keeps in memory by `reads` needs the same right", async () => {
  const { name: _, ...read } = trigger({ namespaces: { type: "names", names: ["data"] } });
  const { grant, assert } = await watching(manifestOf({ name: "f.team-a", reads: [{ ...read, indexes: [] }] }));
  await assert();
  grant.rules = [events];
  await expect(assert()).rejects.toMatchObject({ code: "WF_DEPLOYED_FORBIDDEN" });
});

test("a trigger by the labels of namespaces needs the right in all of them, and that to see namespaces", async () => {
  const { grant, assert } = await watching(
    manifestOf({
      name: "f.team-a",
      triggers: [trigger({ namespaces: { type: "labels", labelSelector: "team=a" } })],
    }),
  );
  await expect(assert()).rejects.toThrow(/may not list namespaces in all namespaces, nor watch namespaces/);
  grant.rules = [{ ...follow, resources: ["configmaps", "namespaces"] }, events];
  await assert();
});

test("a kind of which nobody says which resource it is is not subscribed", async () => {
  const { assert } = await watching(
    manifestOf({ name: "f.team-a", triggers: [trigger({ apiVersion: "my.domain/v1", kind: "MyApp" })] }),
  );
  await expect(assert()).rejects.toMatchObject({ code: "WF_DEPLOYED_FORBIDDEN" });
});

test("its right ends with the grant, in a namespace that is missing as well, which somebody else may create", async () => {
  const { grant, assert, excluded, changed, round } = await watching();
  await assert();
  await round();
  expect(excluded).toEqual([]);
  grant.rules = [events];
  await round();
  expect(excluded).toEqual([
    expect.stringContaining('the account of f.team-a may not list configmaps in namespace "data"'),
  ]);
  expect(changed).toEqual([]);
});

test("its right ends when its account is gone", async () => {
  const { grant, grants, assert, excluded } = await watching();
  await assert();
  grant.account = false;
  grant.rules = [];
  grants.suspect("f.team-a");
  await expect.poll(() => excluded).toEqual([expect.stringContaining("WF_DEPLOYED_FORBIDDEN")]);
});

test("its right ends a minute after the last answer: who keeps the question from being answered gains no more", async () => {
  const { grant, assert, excluded, round } = await watching();
  await assert();
  grant.rules = undefined;
  for (let at = everyMs; at < 60_000; at += everyMs) await round();
  expect(excluded).toEqual([]);
  await round();
  expect(excluded).toEqual([expect.stringContaining("were not confirmed for a minute")]);
});

const permissionIn = (namespaces: readonly string[]) => ({
  apiGroups: [""],
  resources: ["pods"],
  verbs: ["get"],
  namespaces,
});
const namespacesOf = (stem: string, count: number) => Array.from({ length: count }, (_, at) => `${stem}${at}`);

test("it asks in a few hundred namespaces at most, so that its check does not keep others from being checked", async () => {
  const permissions = ["a", "b", "c"].map((stem) => permissionIn(namespacesOf(stem, 100)));
  const { assert, questions } = await watching(manifestOf({ name: "f.team-a", permissions }));
  await expect(assert()).rejects.toThrow("the rights of f.team-a are in 300 namespaces; expected at most 200");
  expect(questions()).toBe(0);
});

test("the check ends with the third right that is missing", async () => {
  const { assert, questions } = await watching(
    manifestOf({ name: "f.team-a", permissions: [permissionIn(namespacesOf("a", 100))] }),
  );
  await expect(assert()).rejects.toMatchObject({ code: "WF_DEPLOYED_FORBIDDEN" });
  expect(questions()).toBeLessThanOrEqual(8);
});

test("answers that are given slowly count as none after a minute", async () => {
  const pods = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
  const { grant, grants, assert, excluded } = await watching(
    manifestOf({ name: "f.team-a", permissions: [permissionIn(namespacesOf("a", 100))] }),
  );
  grant.rules = [follow, events, pods];
  await assert();
  grant.slowMs = 4_000;
  grants.suspect("f.team-a");
  await expect.poll(() => excluded[0]).toContain("were not confirmed for a minute");
});
