import { expect, onTestFinished, test } from "vitest";
import { GrantWatch } from "../../runtime/rbac/grant-watch.ts";
import { apiServer, manifestOf, status } from "../access/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["patch"] };
const manifest = manifestOf({ permissions: [{ ...rule, namespaces: ["demo"] }] });

/** A watch over the function `f`, whose account has what `granted` says; undefined: the API server fails. */
async function watching() {
  const grant: { rules: object[] | undefined } = { rules: [rule] };
  const server = await apiServer(({ path, body }) => {
    if (!grant.rules) return status(500, "InternalError");
    const { spec } = body as { spec: { namespace?: string } };
    if (path.endsWith("/selfsubjectrulesreviews")) return { body: { status: { resourceRules: grant.rules } } };
    return path.endsWith("/selfsubjectaccessreviews") && spec ? { body: { status: { allowed: false } } } : undefined;
  });
  const clock = new VirtualClock();
  const told: string[] = [];
  const functions = new Map([[manifest.name, manifest]]);
  const grants = new GrantWatch({
    accounts: { namespace: "wf", transport: () => server.transport },
    functions,
    clock,
    changed: (name, fault) => told.push(`${name} ${fault?.code ?? "well"}`),
  });
  onTestFinished(() => grants.close());
  /** A round later, looked and at rest. */
  const round = async (ms = 10_000) => {
    await clock.advance(ms);
    await expect.poll(() => clock.timers).toBe(1);
  };
  const looks = () => server.received.filter(({ path }) => path.endsWith("/selfsubjectrulesreviews")).length;
  return { clock, grant, grants, functions, told, looks, round };
}

test("a function is looked at every ten seconds, and only what changes is told", async () => {
  const { grant, grants, told, looks, round } = await watching();
  await round();
  expect(looks()).toBe(1);
  grant.rules = [];
  await round(9_999);
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
