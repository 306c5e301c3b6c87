import { runHandler } from "@watchfire/sdk/testing";
import { expect, test } from "vitest";
import handler from "../functions/image-report/handler.ts";
import { fullName } from "../functions/image-report/image-name.ts";

const pod = (name: string, ...images: string[]) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop" },
  spec: { containers: images.map((image) => ({ name: "main", image })) },
});
const event = { type: "Scheduled", scheduledFor: "2026-11-03T02:00:00.000Z" } as const;
const env = { ALLOWED: "registry.example.com/ registry.k8s.io/" };

test("the report names each image of another registry, and is replaced by the next one", async () => {
  const good = pod("good", "registry.example.com/web:1");
  const bad = pod("bad", "registry.example.com.evil.example/web:1", "nginx", "nginx");
  const first = await runHandler(handler, event, { env, objects: [good, bad] });
  expect(first.outcome).toBe("ok");
  const pods = "shop/bad: docker.io/library/nginx\nshop/bad: registry.example.com.evil.example/web:1";
  expect(first.objects.at(-1)).toMatchObject({ metadata: { name: "image-report" }, data: { found: "2", pods } });
  const objects = first.objects.filter(({ metadata }) => metadata?.name !== "bad");
  const second = await runHandler(handler, event, { env, objects });
  expect(second.objects.at(-1)).toMatchObject({ data: { found: "0", pods: "" } });
});

test("an image's registry is the one that it is pulled from", () => {
  expect(["nginx:1", "team/web", "localhost/web", "quay.io/web", "local:5000/web"].map(fullName)).toEqual([
    "docker.io/library/nginx:1",
    "docker.io/team/web",
    "localhost/web",
    "quay.io/web",
    "local:5000/web",
  ]);
});
