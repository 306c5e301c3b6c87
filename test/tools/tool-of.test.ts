import { expect, test } from "vitest";
import { toolOf } from "./tool-of.ts";

test("a tool that is missing skips tests on a developer's machine", () => {
  expect(toolOf({}, "NATS_SERVER")).toBeUndefined();
  expect(toolOf({ NATS_SERVER: "/bin/nats-server" }, "NATS_SERVER")).toBe("/bin/nats-server");
});

test("in CI it is an error, unless the job says that it leaves these tests out", () => {
  expect(() => toolOf({ CI: "true" }, "NATS_SERVER")).toThrow("TESTS_WITHOUT=NATS_SERVER");
  expect(() => toolOf({ CI: "true", TESTS_WITHOUT: "KUBEBUILDER_ASSETS" }, "NATS_SERVER")).toThrow("NATS_SERVER");
  expect(toolOf({ CI: "true", TESTS_WITHOUT: "KUBEBUILDER_ASSETS, NATS_SERVER" }, "NATS_SERVER")).toBeUndefined();
});
