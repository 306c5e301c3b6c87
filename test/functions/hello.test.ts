import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../tools/until.ts";
import { configMapPath, FunctionsFixture, manifest } from "./fixture.ts";

let fixture: FunctionsFixture;
beforeAll(async () => {
  fixture = await FunctionsFixture.start();
});
afterAll(() => fixture?.close());

const told = (message: string, name: string) =>
  until(`${message} about ${name}`, 10_000, async () =>
    (await fixture.log()).find((line) => line.msg === message && JSON.stringify(line).includes(`demo/${name}`)),
  );

test("the sample is greeted when it comes, when it changes and when it goes", async () => {
  const [namespace, configMap] = manifest("hello/sample.yaml");
  await fixture.client.post("/api/v1/namespaces", namespace);
  await fixture.client.post("/api/v1/namespaces/demo/configmaps", configMap);
  expect(await told("hello", "app-settings")).toMatchObject({ level: "info", function: "hello" });
  await fixture.client.patch(configMapPath("demo", "app-settings"), { data: { audience: "everyone" } });
  await told("hello again", "app-settings");
  await fixture.client.delete(configMapPath("demo", "app-settings"));
  await told("goodbye", "app-settings");
});

test("with nothing of theirs installed, every function is ready and none complains", async () => {
  expect((await fixture.runtime.read("/readyz")).status).toBe(200);
  expect((await fixture.log()).filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
});
