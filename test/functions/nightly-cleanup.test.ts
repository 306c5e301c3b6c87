import type { V1Pod } from "@watchfire/sdk/kubernetes";
import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../../functions/nightly-cleanup/handler.ts";

const label = "nightly-cleanup.watchfire.dev/after";
const scheduledFor = "2026-11-03T02:00:00.000Z";

/** A Pod that ended so many hours before the run; without hours, a running Pod. */
function pod(name: string, after: string | undefined, hoursAgo?: number): V1Pod {
  const finishedAt = new Date(Date.parse(scheduledFor) - (hoursAgo ?? 0) * 3_600_000).toISOString();
  const ended = { phase: "Succeeded", containerStatuses: [{ state: { terminated: { exitCode: 0, finishedAt } } }] };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "jobs", uid: `uid-${name}`, labels: after === undefined ? {} : { [label]: after } },
    spec: { containers: [{ name: "main", image: "example.com/job:1" }] },
    status: (hoursAgo === undefined ? { phase: "Running" } : ended) as NonNullable<V1Pod["status"]>,
  };
}

const clean = (objects: V1Pod[], kube = {}) =>
  runHandler(handler, { type: "Scheduled", scheduledFor }, { objects, kube });

test("finished Pods go once they are as old as their label says, and no other Pod does", async () => {
  const objects = [
    pod("old", "24h", 25),
    pod("young", "24h", 23),
    pod("running", "24h"),
    pod("unlabelled", undefined, 1000),
    pod("unclear", "soon", 1000),
  ];
  const run = await clean(objects);
  expect(run.outcome).toBe("ok");
  expect(run.objects.map(({ metadata }) => metadata?.name)).toEqual(["young", "running", "unlabelled", "unclear"]);
  expect(run.metrics).toEqual([{ name: "pods_removed_total", value: 1, labels: {} }]);
  expect(run.logs.filter(({ level }) => level === "warn").map(({ fields }) => fields.pod)).toEqual(["jobs/unclear"]);
});

test("a Pod is deleted as the one that was seen, not as another of its name", async () => {
  const { calls } = await clean([pod("old", "1h", 2)]);
  expect(calls.find(({ method }) => method === "delete")?.arguments).toEqual([
    { apiVersion: "v1", kind: "Pod", name: "old", namespace: "jobs" },
    { preconditions: { uid: "uid-old" } },
  ]);
});

test("a run that is made up for looks at the time that was missed, so that nothing goes before its time", async () => {
  const objects = [pod("old", "24h", 23.9)];
  expect((await clean(objects)).objects).toHaveLength(1);
});

test("Pods that are gone meanwhile do not keep the others from going, and any other failure is tried again", async () => {
  const { NotFoundError, ForbiddenError } = await import("@watchfire/sdk");
  const objects = [pod("gone", "1h", 2), pod("old", "1h", 2)];
  const gone = await clean(objects, { delete: async () => Promise.reject(new NotFoundError("no such Pod")) });
  expect(gone.outcome).toBe("ok");
  const refused = await clean(objects, { delete: async () => Promise.reject(new ForbiddenError("no")) });
  expect(refused.outcome).toBe("failed");
});
