import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRange } from "../../functions/scale-guard/range.ts";
import { Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.start();
});
afterAll(() => stage?.close());

const deployments = "/apis/apps/v1/namespaces/default/deployments";
const deploy = (name: string, replicas: number, range?: string) =>
  stage.client.post(deployments, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, annotations: range === undefined ? {} : { "scale-guard.watchfire.dev/range": range } },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name, image: "example.com/web:1" }] } },
    },
  });
const hasReplicas = (name: string, replicas: number) =>
  stage.object(`${deployments}/${name}`, ({ spec }) => spec.replicas === replicas);

test("a Deployment that is scaled out of its range is brought back, and an Event says so", async () => {
  await deploy("web", 3, "2-5");
  await stage.client.patch(`${deployments}/web/scale`, { spec: { replicas: 9 } });
  await hasReplicas("web", 5);
  expect(await stage.event("default", "web", "ScaledIntoRange")).toMatchObject({
    type: "Normal",
    message: expect.stringContaining("from 9 to 5"),
    involvedObject: { kind: "Deployment", name: "web" },
  });
  await stage.client.patch(`${deployments}/web/scale`, { spec: { replicas: 0 } });
  await hasReplicas("web", 2);
});

test("a Deployment is brought into a range that it is given later", async () => {
  await deploy("late", 9);
  await stage.client.patch(`${deployments}/late`, {
    metadata: { annotations: { "scale-guard.watchfire.dev/range": "3" } },
  });
  await hasReplicas("late", 3);
});

test("a range that cannot be read is told, and the replicas stay", async () => {
  await deploy("unclear", 9, "two to five");
  const { message, type } = await stage.event("default", "unclear", "BadRange");
  expect(type).toBe("Warning");
  expect(message).toContain("two to five");
  await hasReplicas("unclear", 9);
  expect(await (await stage.runtime.read("/metrics")).text()).not.toMatch(
    /function="scale-guard".*outcome="dead_letter".* [1-9]/,
  );
});

test.each([
  ["2-5", { min: 2, max: 5 }],
  [" 2 - 5 ", { min: 2, max: 5 }],
  ["0-0", { min: 0, max: 0 }],
  ["3", { min: 3, max: 3 }],
  ["5-2", undefined],
  ["-1-4", undefined],
  ["2-", undefined],
  ["", undefined],
  ["99999999999", undefined],
])("the range %j is %o", (text, range) => {
  expect(parseRange(text)).toEqual(range);
});
