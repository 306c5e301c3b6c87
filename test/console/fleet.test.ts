import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { FleetLink, type FleetPeer } from "../../runtime/console/fleet-link.ts";
import { servedConsole } from "./served.ts";

const slotOf = (slot: number, owner: string, ...functions: string[]) => {
  return { slot, owner, state: "running", functions };
};

/** Two replicas: `a` runs greet, in slot 0, and `b` runs copy, in slot 1. A third, `c`, has announced nothing. */
async function fleetOfTwo() {
  const peers: FleetPeer[] = [];
  const slots = [slotOf(0, "a", "greet"), slotOf(1, "b", "copy")];
  const replicaOf = (replica: string, name: string) =>
    servedConsole({
      name,
      fleet: { replica, replicas: 2, slots },
      replica: { owner: `${replica}#1`, peers: () => peers },
    });
  const [a, b] = [await replicaOf("a", "greet"), await replicaOf("b", "copy")];
  for (const [owner, { link }] of [
    ["a#1", a],
    ["b#1", b],
  ] as const)
    peers.push({ owner, announcement: link?.announcement });
  const ask = async (path: string, body?: unknown) => {
    const method = body === undefined ? "GET" : "POST";
    const { status, body: text } = await a.ask(`/api/${path}`, { method, headers: a.bearing, body });
    return { status, data: JSON.parse(text) };
  };
  return { a, b, peers, slots, ask };
}

test("a replica answers for all of its fleet, and asks each other replica once", async () => {
  const { a, b, ask } = await fleetOfTwo();
  const { data: overview } = await ask("overview");
  expect(overview.functions.map(({ name }: { name: string }) => name)).toEqual(["greet", "copy"]);
  expect(overview.replicas.map(({ name, answers }: { name: string; answers: boolean }) => [name, answers])).toEqual([
    ["a", true],
    ["b", true],
  ]);
  expect(overview.elsewhere).toBeUndefined();
  expect((await ask("functions/copy")).data.function.name).toBe("copy");
  const { data: runs } = await ask("runs?limit=10");
  expect(runs.runs.map((run: { function: string }) => run.function).sort()).toEqual(["copy", "greet"]);
  const { data: errors } = await ask("errors");
  expect(errors.groups).toMatchObject([{ count: 2, functions: ["copy", "greet"] }]);
  const { data: group } = await ask(`errors/${errors.groups[0].fingerprint}`);
  expect(group.runs).toHaveLength(2);
  expect((await ask("dead-letters")).data).toHaveLength(2);
  expect(b.asked).toEqual([
    "GET /api/overview",
    "GET /api/functions/copy",
    "GET /api/runs",
    "GET /api/errors",
    `GET /api/errors/${errors.groups[0].fingerprint}`,
    "GET /api/dead-letters",
  ]);
  expect(a.asked, "a replica that is asked asks no other one").toEqual([]);
});

test("a change is done by the replica that runs the function, and is logged by the one that was asked", async () => {
  const { a, b, ask } = await fleetOfTwo();
  expect((await ask("functions/copy/pause", {})).data).toEqual({ changed: true, says: "copy is paused" });
  expect(b.asked).toEqual(["POST /api/functions/copy/pause"]);
  expect(a.audit).toMatchObject([{ verb: "pause", function: "copy", result: "done" }]);
  expect((await ask("functions/greet/pause", {})).data.says).toBe("greet is paused");
  expect(b.asked).toHaveLength(1);
});

test("an answer names a replica that did not answer, and why", async () => {
  const { b, peers, slots, ask } = await fleetOfTwo();
  b.link?.close();
  const { data: runs } = await ask("runs?limit=10");
  expect(runs.runs).toHaveLength(1);
  expect(runs.elsewhere).toMatch(/^b did not answer: .*ECONNREFUSED/);
  expect((await ask("functions/copy")).data.error).toMatch(/b/);
  peers.push({ owner: "c#4" });
  slots.push(slotOf(2, "d", "label"));
  const { data: overview } = await ask("overview");
  expect(overview.elsewhere).toMatch(/c did not answer: it has no console; d did not answer: it is not alive$/);
  expect(overview.replicas.filter(({ answers }: { answers: boolean }) => !answers)).toHaveLength(3);
});

test("a replica that accepts the connection and says nothing is waited for until a limit", async () => {
  const silent = createServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const parts = { self: () => "a#1", peers: () => peers, answer: () => new Response(), askMs: 50 };
  const link = await FleetLink.open("127.0.0.1", 0, parts);
  onTestFinished(() => link.close());
  const peers = [{ owner: "b#1", announcement: JSON.stringify({ ...JSON.parse(link.announcement), port }) }];
  await expect(link.ask("b#1", "GET", "/api/overview")).rejects.toThrow("no answer within 0.05 s");
});

test("a replica answers no stranger: neither without a key, nor with that of another replica", async () => {
  const { a, b, peers } = await fleetOfTwo();
  const { port } = JSON.parse(b.link?.announcement ?? "{}");
  // The announcement of `a` is replaced by that of somebody who has no Lease.
  const stranger = await servedConsole({ name: "x", replica: { owner: "a#1", peers: () => peers } });
  await expect(stranger.link?.ask("b#1", "GET", "/api/overview")).rejects.toThrow();
  await expect(stranger.link?.ask("a#1", "GET", "/api/overview")).rejects.toThrow("it announces no address");
  const plain = connect(port, "127.0.0.1");
  onTestFinished(() => void plain.destroy());
  plain.write("GET /api/overview HTTP/1.1\r\nhost: replica\r\n\r\n");
  const answered = await new Promise<string>((resolve) => {
    let text = "";
    plain.on("data", (part) => {
      text += part;
    });
    plain.on("close", () => resolve(text));
    plain.on("error", () => resolve(text));
  });
  expect(answered).not.toContain("200");
  const error = await new Promise<string>((resolve) => {
    const tls = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => resolve("connected"));
    tls.on("error", ({ message }) => resolve(message));
    onTestFinished(() => void tls.destroy());
  });
  expect(error).not.toBe("connected");
  expect(b.asked).toEqual([]);
  expect(a.asked).toEqual([]);
});
