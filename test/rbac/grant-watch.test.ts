import { expect, onTestFinished, test } from "vitest";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { Discovery, type Lookup } from "../../runtime/kube/discovery.ts";
import { GrantWatch } from "../../runtime/rbac/grant-watch.ts";
import { rememberedKinds } from "../../runtime/rbac/kinds.ts";
import { type Answer, apiServer, manifestOf, status } from "../access/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { trigger } from "./trigger.ts";

const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] };
const configMapPatcher = manifestOf({ permissions: [{ ...rule, namespaces: ["demo"] }] });

/** Interval of the checks of a function, in milliseconds. */
const everyMs = 8_000;

interface Review {
  readonly spec: {
    readonly namespace?: string;
    readonly resourceAttributes?: { readonly verb: string; readonly resource: string; readonly namespace?: string };
  };
}

/** A watch over a function whose account has the rights in `grant.rules`; `undefined`: the API server fails. */
async function watching(manifest = configMapPatcher) {
  const grant: { rules: object[] | undefined; account: boolean } = { rules: [rule], account: true };
  /** The API server's answers about namespaces. A namespace without an entry exists. */
  const namespaces = new Map<string, Answer>();
  const server = await apiServer(({ path, headers }) => {
    if (!grant.rules) return status(500, "InternalError");
    if (path.endsWith("/serviceaccounts/watchfire-f/token")) {
      if (!grant.account) return status(404, "NotFound");
      return { body: { spec: { expirationSeconds: 600 }, status: { token: "t" } } };
    }
    const [, namespace] = /^\/api\/v1\/namespaces\/([^/]+)$/.exec(path) ?? [];
    if (namespace !== undefined) return namespaces.get(namespace) ?? { body: { metadata: { name: namespace } } };
    if (!grant.account && headers.authorization) return status(401, "Unauthorized");
    if (path.endsWith("/selfsubjectrulesreviews")) return { body: { status: { resourceRules: grant.rules } } };
    return path.endsWith("/selfsubjectaccessreviews") ? { body: { status: { allowed: false } } } : undefined;
  });
  const clock = new VirtualClock();
  const { transport } = server;
  const told: string[] = [];
  const functions = new Map([[manifest.name, manifest]]);
  const grants = new GrantWatch({
    transport,
    accounts: new FunctionAccounts({ transport, namespace: "wf", account: "watchfire", clock, random: () => 0.5 }),
    functions,
    kinds: rememberedKinds(new Discovery(transport, clock)),
    clock,
    changed: (name, fault) => told.push(`${name} ${fault?.code ?? "well"}`),
    excluded: (name, fault) => told.push(`${name} excluded: ${fault.message}`),
    absent: (name, gone) => told.push(`${name} without ${gone.join()}`),
  });
  onTestFinished(() => grants.close());
  /** Lets one round of checks complete. */
  const round = async (ms = everyMs) => {
    await clock.advance(ms);
    await expect.poll(() => clock.timers).toBe(1);
  };
  const looks = () => server.received.filter(({ path }) => path.endsWith("/selfsubjectrulesreviews")).length;
  /** The missing grants that were found, one line each: `create events @demo`. */
  const missed = () =>
    server.received.flatMap(({ body }) => {
      const asked = (body as Review | undefined)?.spec.resourceAttributes;
      return asked ? [`${asked.verb} ${asked.resource} @${asked.namespace ?? "*"}`] : [];
    });
  return { clock, grant, grants, functions, namespaces, told, looks, missed, round };
}

test("a function is looked at every eight seconds, and only what changes is told", async () => {
  const { grant, grants, told, looks, round } = await watching();
  await round();
  expect(looks()).toBe(1);
  grant.rules = [];
  await round(everyMs - 1);
  expect(looks()).toBe(1);
  await round(1);
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN"]);
  expect(grants.fault("f")?.message).toContain('may not patch configmaps in namespace "demo"');
  await round();
  await round();
  expect(looks()).toBe(4);
  grant.rules = [rule];
  await round();
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN", "f well"]);
  expect(grants.fault("f")).toBeUndefined();
});

test("one whose call was refused is looked at at once, however many are refused but once a second", async () => {
  const { clock, grant, grants, told, looks } = await watching();
  grant.rules = [];
  for (let call = 0; call < 100; call++) grants.suspect("f");
  await expect.poll(() => told).toEqual(["f WF_KUBE_FORBIDDEN"]);
  expect(looks()).toBe(1);
  await clock.advance(1_000);
  grants.suspect("f");
  await expect.poll(looks).toBe(2);
});

test("while nobody answers, what was known last stays", async () => {
  const { grant, grants, told, round } = await watching();
  grant.rules = [];
  grants.suspect("f");
  await expect.poll(() => told).toHaveLength(1);
  grant.rules = undefined;
  await round();
  await round();
  expect(grants.fault("f")).toBeDefined();
  expect(told).toHaveLength(1);
});

test("one that is gone is forbidden no more", async () => {
  const { grant, grants, functions, told } = await watching();
  grant.rules = [];
  grants.suspect("f");
  await expect.poll(() => told).toHaveLength(1);
  functions.delete("f");
  grants.forget("f");
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN", "f well"]);
  expect(grants.fault("f")).toBeUndefined();
});

test.each([
  ["in the namespaces named", { namespaces: { type: "names", names: ["a", "b"] } }, ["a", "b"]],
  ["everywhere, where no namespace is named", {}, ["*"]],
  ["in `default`, where the objects lie in no namespace", { kind: "Node" }, ["default"]],
] as const)("the right to write Events is looked at beside the triggers' objects: %s", async (_, of, namespaces) => {
  const { grant, grants, told, missed, round } = await watching(manifestOf({ triggers: [trigger(of)] }));
  grant.rules = [];
  await round();
  expect(missed()).toEqual(namespaces.flatMap((name) => [`create events @${name}`, `patch events @${name}`]));
  expect(grants.fault("f")?.message).toContain("may not create events");
  grant.rules = [{ apiGroups: [""], resources: ["events"], verbs: ["create", "patch"] }];
  await round();
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN", "f well"]);
});

const leaving = { body: { metadata: { name: "gone", deletionTimestamp: "2026-01-01T00:00:00Z" } } };

test.each([
  ["does not exist", status(404, "NotFound")],
  ["is being deleted", leaving],
])("rights in a namespace that %s hold up no function, and it is told once", async (_, answer) => {
  const triggers = [trigger({ namespaces: { type: "names", names: ["gone", "other"] } })];
  const { grant, grants, namespaces, told, round } = await watching(manifestOf({ triggers }));
  namespaces.set("gone", answer);
  grant.rules = [];
  await round();
  expect(grants.fault("f")?.message).toContain(
    'the account of f may not create events in namespace "other", nor patch events in namespace "other"',
  );
  namespaces.set("other", answer);
  await round();
  await round();
  expect(grants.fault("f")).toBeUndefined();
  namespaces.clear();
  await round();
  expect(grants.fault("f")).toBeDefined();
  const forbidden = "f WF_KUBE_FORBIDDEN";
  expect(told).toEqual(["f without gone", forbidden, "f without gone,other", "f well", "f without ", forbidden]);
});

test.each([
  ["the API server", status(403, "Forbidden")],
  ["a proxy", { status: 403, body: { error: "no" } }],
])("a namespace that %s does not let the runtime look at counts as there", async (_, answer) => {
  const triggers = [trigger({ namespaces: { type: "names", names: ["other"] } })];
  const { grant, grants, namespaces, round } = await watching(manifestOf({ triggers }));
  namespaces.set("other", answer);
  grant.rules = [];
  await round();
  expect(grants.fault("f")?.message).toContain('may not create events in namespace "other"');
});

test("rights in a namespace that is gone, where the function only writes, hold it up: each of its events would fail", async () => {
  const { grant, grants, namespaces, told, round } = await watching();
  namespaces.set("demo", status(404, "NotFound"));
  grant.rules = [];
  await round();
  expect(grants.fault("f")?.message).toContain('may not patch configmaps in namespace "demo"');
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN"]);
});

test("a kind that is not installed keeps nothing else from being looked at", async () => {
  const unknown = trigger({ apiVersion: "my.domain/v1", kind: "MyApp" });
  const { grant, grants, missed, round } = await watching({ ...configMapPatcher, triggers: [unknown] });
  await round();
  expect(grants.fault("f")).toBeUndefined();
  grant.rules = [];
  await round();
  expect(missed()).toEqual(["patch configmaps @demo"]);
});

test("a function that needs nothing is forbidden within 20 s when its account is gone, and well again when it is back", async () => {
  const { grant, grants, told, round } = await watching(manifestOf());
  await round();
  grant.account = false;
  await round();
  await round();
  expect(grants.fault("f")?.message).toContain("there is no ServiceAccount watchfire-f");
  grant.account = true;
  await round();
  expect(told).toEqual(["f WF_KUBE_FORBIDDEN", "f well"]);
});

test("of a kind that was served once it is known where its Events lie, also while the API server does not answer", async () => {
  const resource = { group: "my.domain", version: "v1", plural: "myapps", kind: "MyApp", namespaced: false };
  const served = { ...resource, verbs: [], subresources: [] };
  const answers: (() => Promise<Lookup>)[] = [
    () => Promise.reject(new Error("nobody answers")),
    async () => ({ type: "NotServed", unknown: "kind", hint: undefined, reason: "not installed" }),
    async () => ({ type: "Served", resource: served }),
    () => Promise.reject(new Error("nobody answers")),
  ];
  const kindsOf = rememberedKinds({ resolve: () => answers.shift()?.() ?? Promise.reject(new Error("no more")) });
  const known: unknown[] = [];
  while (answers.length > 0) {
    const kinds = await kindsOf(manifestOf({ triggers: [trigger({ apiVersion: "my.domain/v1", kind: "MyApp" })] }));
    known.push(kinds("my.domain/v1", "MyApp")?.namespaced);
  }
  expect(known).toEqual([undefined, undefined, false, false]);
});

test("the kind of what a function keeps in memory is looked up as that of a trigger", async () => {
  const resource = { group: "my.domain", version: "v1", plural: "myapps", kind: "MyApp", namespaced: true };
  const kindsOf = rememberedKinds({
    resolve: async () => ({ type: "Served", resource: { ...resource, verbs: [], subresources: [] } }),
  });
  const { name: _, ...read } = trigger({ apiVersion: "my.domain/v1", kind: "MyApp" });
  const kinds = await kindsOf(manifestOf({ reads: [{ ...read, indexes: [] }] }));
  expect(kinds("my.domain/v1", "MyApp")?.plural).toBe("myapps");
});
