import { expect, test } from "vitest";
import { operationOf } from "../../../runtime/control/access/operation.ts";

const asked = (method: string, url: string, body?: unknown) => {
  const { pathname: path, searchParams } = new URL(url, "http://localhost");
  return operationOf({ method, path, query: Object.fromEntries(searchParams), body: async () => body });
};

test.each([
  ["/functions/greet/runs", { right: "get", name: "greet" }],
  ["/functions/greet", { right: "get", name: "greet" }],
  ["/functions/logs/logs", { right: "get", name: "logs" }],
  ["/functions/runs", { right: "list" }],
  ["/functions/logs", { right: "list" }],
  ["/functions", { right: "list" }],
  ["/explain/greet?namespace=a&name=b", { right: "get", name: "greet" }],
  ["/dead-letters", { right: "list" }],
  ["/dead-letters?function=greet", { right: "get", name: "greet" }],
  ["/dead-letters/12", { right: "get", letters: ["12"] }],
  ["/runs?function=greet", { right: "get", name: "greet" }],
  ["/runs/1?function=greet", { right: "get", name: "greet" }],
  ["/runs/1/event?function=greet", { right: "update", name: "greet" }],
  ["/runs/1/event", { right: "update" }],
  ["/runs", { right: "list" }],
  ["/overview", { right: "list" }],
])("GET %s needs the right on what it names, or on all", async (url, operation) => {
  expect(await asked("GET", url)).toEqual(operation);
});

test.each(["/errors", "/not-yet-known", "/"])(
  "GET %s needs the right on all functions, whatever function the query names",
  async (path) => {
    expect(await asked("GET", `${path}?function=greet`)).toEqual({ right: "list" });
  },
);

test.each([
  ["/functions/greet/pause", {}, { right: "update", name: "greet", action: "pause" }],
  ["/functions/a%2Fb/resume", {}, { right: "update", name: "a/b", action: "resume" }],
  ["/functions/greet/redeliver", { all: true }, { right: "update", name: "greet", action: "redeliver" }],
  ["/dead-letters/replay", { ids: ["1", "2"] }, { right: "update", letters: ["1", "2"], action: "replay" }],
  ["/dead-letters/drop", undefined, { right: "update", action: "drop" }],
  ["/not-yet-known", {}, { right: "update", action: "not-yet-known" }],
])("POST %s needs `update`", async (url, body, operation) => {
  expect(await asked("POST", url, body)).toEqual(operation);
});

test.each(["PUT", "PATCH", "DELETE", "OPTIONS", "get"])("%s is a change", async (method) => {
  expect(await asked(method, "/functions/greet/runs")).toMatchObject({ right: "update", name: "greet" });
});

test("a request for the progress of a change is not another change", async () => {
  const progress = { isProgress: true };
  expect(await asked("POST", "/functions/greet/redeliver", { job: "1" })).toMatchObject(progress);
  expect(await asked("POST", "/functions/greet/record", { recording: "1", wait: 2 })).toMatchObject(progress);
  expect(await asked("POST", "/functions/greet/record", { count: 2 })).not.toHaveProperty("isProgress");
});

test.each([
  ["/functions/greet/pause", { job: "1" }],
  ["/functions/greet/resume", { recording: "1" }],
  ["/functions/greet/redeliver", { job: "1", all: true }],
  ["/functions/greet/redeliver", { recording: "1" }],
])("no body makes POST %s pass for a request for progress, so that it escapes the audit", async (path, body) => {
  expect(await asked("POST", path, body)).not.toHaveProperty("isProgress");
});
