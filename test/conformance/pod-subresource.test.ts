import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { admin, createNamespace, unique } from "../target/fixture.ts";

let namespace: string;
let pods: string;
let budgets: string;
beforeAll(async () => {
  namespace = await createNamespace();
  pods = `/api/v1/namespaces/${namespace}/pods`;
  budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
});

const resources = { requests: { cpu: "100m" }, limits: { cpu: "200m" } };
const pod = async (labels: Record<string, string> = {}) => {
  const name = unique("p");
  await admin.post(pods, { metadata: { name, labels }, spec: { containers: [{ name: "c", image: "i", resources }] } });
  return name;
};
const evict = (name: string, dryRun?: string) =>
  admin.reply("POST", `${pods}/${name}/eviction`, {
    query: { dryRun },
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } },
  });
const running = async (labels: Record<string, string>, ready = "True") => {
  const name = await pod(labels);
  const conditions = [{ type: "Ready", status: ready }];
  await admin.patch(`${pods}/${name}/status`, { status: { phase: "Running", conditions } });
  return name;
};
const budget = async (app: string, status?: object, spec: object = {}) => {
  const name = unique("b");
  await admin.post(budgets, {
    metadata: { name },
    spec: { minAvailable: 1, selector: { matchLabels: { app } }, ...spec },
  });
  if (status)
    await admin.patch(`${budgets}/${name}/status`, { status: { observedGeneration: 1, expectedPods: 2, ...status } });
  return name;
};

describe("an eviction", () => {
  test("deletes a pod that has no budget, or that does not run yet", async () => {
    const free = await running({ app: unique("a") });
    expect(await evict(free)).toMatchObject({ status: 201, body: { kind: "Status", status: "Success", code: 201 } });
    const app = unique("a");
    await budget(app);
    const pending = await pod({ app });
    expect((await evict(pending)).status).toBe(201);
    expect((await evict(pending)).status).toBe(404);
  });

  test("is refused while the budget is not counted, and where it allows none", async () => {
    const app = unique("a");
    const uncounted = await budget(app);
    const name = await running({ app });
    const message = "Cannot evict pod as it would violate the pod's disruption budget.";
    const refusal = (words: string) => ({
      status: 429,
      body: {
        reason: "TooManyRequests",
        message,
        details: { causes: [{ reason: "DisruptionBudget", message: words }] },
      },
    });
    expect(await evict(name)).toMatchObject(
      refusal(`The disruption budget ${uncounted} is still being processed by the server.`),
    );
    const counted = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 2,
      expectedPods: 2,
    };
    await admin.patch(`${budgets}/${uncounted}/status`, { status: counted });
    const words = `The disruption budget ${uncounted} needs 2 healthy pods and has 1 currently`;
    expect(await evict(name)).toMatchObject(refusal(words));
    expect((await admin.get(`${pods}/${name}`)).metadata.deletionTimestamp).toBeUndefined();
  });

  test("takes one from the budget, and from a budget of one no second", async () => {
    const app = unique("a");
    const name = await budget(app, { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
    const [first, second] = [await running({ app }), await running({ app })];
    expect((await evict(first, "All")).status).toBe(201);
    expect((await evict(first)).status).toBe(201);
    expect((await admin.get(`${budgets}/${name}`)).status).toMatchObject({
      disruptionsAllowed: 0,
      disruptedPods: { [first]: expect.any(String) },
    });
    expect((await evict(second)).status).toBe(429);
  });

  test("of a pod that is not ready takes nothing, where enough others are or the budget says so", async () => {
    const app = unique("a");
    await budget(app, { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 });
    expect((await evict(await running({ app }, "False"))).status).toBe(201);
    const other = unique("a");
    const none = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1 };
    const name = await budget(other, none);
    const unready = await running({ app: other }, "False");
    expect((await evict(unready)).status).toBe(429);
    await admin.patch(`${budgets}/${name}`, { spec: { unhealthyPodEvictionPolicy: "AlwaysAllow" } });
    expect((await evict(unready)).status).toBe(201);
  });

  test("of a pod with two budgets is an error", async () => {
    const app = unique("a");
    await budget(app, { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
    await budget(app, { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
    const message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    expect(await evict(await running({ app }))).toMatchObject({ status: 500, body: { message } });
  });
});

describe("the resize subresource", () => {
  const resize = (name: string, spec: object) =>
    admin.reply("PATCH", `${pods}/${name}/resize`, { body: { spec }, type: patchType.strategic });

  test("changes the resources of containers, and is read as the pod", async () => {
    const name = await pod();
    const limits = { cpu: "400m" };
    const reply = await resize(name, { containers: [{ name: "c", resources: { limits } }] });
    expect(reply).toMatchObject({
      status: 200,
      body: {
        kind: "Pod",
        spec: { containers: [{ name: "c", image: "i", resources: { limits, requests: { cpu: "100m" } } }] },
      },
    });
    expect((await admin.get(`${pods}/${name}/resize`)).spec.containers).toEqual(reply.body.spec.containers);
  });

  test("changes nothing else", async () => {
    const name = await pod();
    const container = { name: "c", image: "other", resources: { limits: { cpu: "300m" } } };
    const reply = await resize(name, { containers: [container], hostNetwork: true });
    expect(reply.body.spec.containers).toMatchObject([{ image: "i", resources: { limits: { cpu: "300m" } } }]);
    expect(reply.body.spec.hostNetwork).toBeUndefined();
    expect((await resize("none", {})).status).toBe(404);
  });
});
