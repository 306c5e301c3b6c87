import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { FunctionAccounts } from "../../runtime/access/function-accounts.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import type { HostCallError } from "../../runtime/sandbox/host-calls.ts";
import { accessTo, apiServer, errorOf, everything } from "./api-server.ts";

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

  const settings = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
  it.each([
    ["kube.create", { object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late", namespace: "demo" } } }],
    ["kube.patch", { ref: settings, patch: {}, type: "merge" }],
    ["events.emit", { object: { ...settings, uid: "u1" }, type: "Normal", reason: "Late", message: "late" }],
  ])("makes no %s that waited for its account's token", async (operation, args) => {
    let withheld: HostCallError | undefined;
    const { transport, received } = await apiServer(({ path }) => {
      if (!path.endsWith("/token")) return { body: {} };
      withheld = lost;
      return { body: { spec: { expirationSeconds: 600 }, status: { token: "late" } } };
    });
    const identified = { transport, namespace: "wf", account: "watchfire", clock: systemClock, random: () => 0 };
    const { call } = await accessTo({
      manifest: { permissions: [everything] },
      accounts: new FunctionAccounts(identified),
      withheld: () => withheld,
    });
    expect(errorOf(await call(operation, args))).toEqual(lost);
    expect(received.map(({ path }) => path)).toEqual(["/api/v1/namespaces/wf/serviceaccounts/watchfire-f/token"]);
    withheld = undefined;
    expect(await call(operation, args)).toMatchObject({ ok: true });
  });

  it("follows no redirect any more", async () => {
    let withheld: HostCallError | undefined;
    const arrived: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      arrived.push(request.url);
      withheld = lost;
      response.writeHead(307, { location: "/further" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const egress = [{ host: "127.0.0.1", ports: [port], network: "Public" as const }];
    const { call } = await accessTo({ manifest: { egress }, withheld: () => withheld });
    expect(errorOf(await call("fetch", { url: `http://127.0.0.1:${port}/first`, method: "POST" }))).toEqual(lost);
    expect(arrived).toEqual(["/first"]);
  });
});
