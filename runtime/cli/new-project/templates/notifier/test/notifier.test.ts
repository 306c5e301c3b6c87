import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/notifier/handler.ts";

const object = {
  apiVersion: "v1",
  kind: "Event",
  metadata: { name: "web.1", namespace: "default" },
  type: "Warning",
  reason: "BackOff",
  message: "Back-off restarting failed container",
  involvedObject: { kind: "Pod", name: "web", namespace: "default" },
} as const;

test("a Warning is posted to the webhook", async () => {
  const posted: unknown[] = [];
  const env = { NOTIFIER_URL: "https://hooks.slack.com/services/x" };
  const fetch = async (url: string, init?: { body?: unknown }) => {
    posted.push([url, JSON.parse(String(init?.body))]);
    return new Response("ok");
  };
  const { outcome } = await runHandler(handler, { type: "Added", object }, { env, fetch });
  expect(outcome).toBe("ok");
  expect(posted).toEqual([
    [env.NOTIFIER_URL, { text: "BackOff: Pod default/web: Back-off restarting failed container" }],
  ]);
});

test("without a webhook it is logged", async () => {
  const { logs } = await runHandler(handler, { type: "Added", object });
  expect(logs.map(({ message }) => message)).toEqual([
    "BackOff: Pod default/web: Back-off restarting failed container",
  ]);
});
