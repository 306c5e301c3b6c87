import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRange } from "../../functions/scale-guard/range.ts";
import { FunctionsFixture } from "./fixture.ts";

let fixture: FunctionsFixture;
beforeAll(async () => {
  fixture = await FunctionsFixture.start();
});
afterAll(() => fixture?.close());

const deployments = "/apis/apps/v1/namespaces/default/deployments";
const deploy = (name: string, replicas: number, range?: string) =>
  fixture.client.post(deployments, {
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
  fixture.object(`${deployments}/${name}`, ({ spec }) => spec.replicas === replicas);

test("a Deployment that is scaled out of its range is brought back, and an Event says so", async () => {
  await deploy("web", 3, "2-5");
  await fixture.client.patch(`${deployments}/web/scale`, { spec: { replicas: 9 } });
  await hasReplicas("web", 5);
  expect(await fixture.event("default", "web", "ScaledIntoRange")).toMatchObject({
    type: "Normal",
    message: expect.stringContaining("from 9 to 5"),
    involvedObject: { kind: "Deployment", name: "web" },
  });
  await fixture.client.patch(`${deployments}/web/scale`, { spec: { replicas: 0 } });
  await hasReplicas("web", 2);
});

test("a Deployment is brought into a range that it is given later", async () => {
  await deploy("late", 9);
  await fixture.client.patch(`${deployments}/late`, {
    metadata: { annotations: { "scale-guard.watchfire.dev/range": "3" } },
  });
  await hasReplicas("late", 3);
});

test("a range that cannot be read is told, and the replicas stay", async () => {
  await deploy("unclear", 9, "two to five");
  const { message, type } = await fixture.event("default", "unclear", "BadRange");
  expect(type).toBe("Warning");
  expect(message).toContain("two to five");
  await hasReplicas("unclear", 9);
  expect(await (await fixture.runtime.read("/metrics")).text()).not.toMatch(
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
