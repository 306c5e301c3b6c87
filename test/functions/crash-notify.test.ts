import type { V1Pod } from "@watchfire/sdk/kubernetes";
import { runBatch } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../../functions/crash-notify/handler.ts";

const env = { CRASH_NOTIFY_URL: "https://hooks.slack.com/services/x" };

const pod = (name: string, reason = "CrashLoopBackOff") => {
  const state = { waiting: { reason } };
  const lastState = { terminated: { exitCode: 137, reason: "OOMKilled" } };
  const web = { name: "web", image: "web", imageID: "", ready: false, restartCount: 4, state, lastState };
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "shop" } };
  return { object: { ...object, status: { containerStatuses: [web] } } as unknown as V1Pod };
};

/** Runs the function with a webhook that answers with this status. Returns the posted bodies. */
async function notify(names: readonly string[], status = 200) {
  const posted: unknown[] = [];
  const fetch = async (url: string, init?: { body?: unknown }) => {
    posted.push([url, JSON.parse(String(init?.body)).text]);
    return new Response("", { status });
  };
  const run = await runBatch(
    handler,
    names.map((name) => pod(name)),
    { env, fetch },
  );
  return { run, posted };
}

test("Pods that crash together are told in one message, with how each ended", async () => {
  const { run, posted } = await notify(["web-0", "web-1"]);
  expect(run).toMatchObject({ outcome: "ok", failed: [], calls: [] });
  const end = "4 restarts, ended with 137 (OOMKilled)";
  expect(posted).toEqual([[env.CRASH_NOTIFY_URL, `In a crash loop:\nshop/web-0 web: ${end}\nshop/web-1 web: ${end}`]]);
});

test("a webhook that is away has all of them wait, and any other refusal fails them", async () => {
  for (const status of [429, 503]) {
    expect((await notify(["web-0"], status)).run).toMatchObject({ outcome: "failed", retryAfterMs: 30_000 });
  }
  const refused = (await notify(["web-0"], 404)).run;
  expect(refused).toMatchObject({ outcome: "failed", failed: ["test-0"] });
  expect(refused.retryAfterMs).toBeUndefined();
});

test("without a webhook they are logged, and a container that waits for another reason is left out", async () => {
  const { logs } = await runBatch(handler, [pod("web-0"), pod("new", "ContainerCreating")]);
  expect(logs.map(({ level, message }) => [level, message.split(":")[0]])).toEqual([["warn", "shop/web-0 web"]]);
});
