import { describe, expect, it } from "vitest";
import type { HostCallError } from "../../runtime/sandbox/host-calls.ts";
import { accessTo, errorOf, everything } from "./api-server.ts";

const lost: HostCallError = { type: "TimeoutError", message: "lost", status: 0, reason: "LeaseLost" };

describe("a runtime that may make no more calls", () => {
  it("makes none of those that wait, either", async () => {
    let withheld: HostCallError | undefined;
    const { call, received } = await accessTo({
      manifest: { permissions: [everything] },
      script: ({ path }) => (path.endsWith("/slow") ? "never" : { body: {} }),
      limits: { callsAtOnce: 1 },
      withheld: () => withheld,
    });
    const get = (name: string, signal?: AbortSignal) =>
      call("kube.get", { ref: { apiVersion: "v1", kind: "ConfigMap", name, namespace: "demo" } }, signal);
    const first = new AbortController();
    const slow = get("slow", first.signal);
    await expect.poll(() => received.length).toBe(1);
    const waiting = [get("a"), get("b")];
    withheld = lost;
    first.abort(new Error("over"));
    await slow;
    for (const each of waiting) expect(errorOf(await each)).toEqual(lost);
    expect(received).toHaveLength(1);
  });
});
