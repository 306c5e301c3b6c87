import { describe, expect, it } from "vitest";
import { VirtualClock } from "../virtual-clock.ts";
import { type AccessSetup, accessTo, caller, errorOf, type Received, status } from "./api-server.ts";

const settings = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
const event = { object: settings, type: "Normal", reason: "Copied", message: "copied to team-b" };

/** The Events that the API server holds afterwards, as creates and patches make them. */
function eventsOf(received: readonly Received[]) {
  const events = new Map<string, Record<string, unknown>>();
  for (const { method, path, body } of received) {
    const fields = body as Record<string, unknown>;
    const name = method === "POST" ? `${path}/${(fields.metadata as { name: string }).name}` : path;
    events.set(name, { ...events.get(name), ...fields });
  }
  return [...events.values()];
}

async function recorder(setup: AccessSetup = {}) {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const ok = () => ({ body: {} });
  const { call, received } = await accessTo({ clock, script: ok, ...setup });
  return { clock, received, emit: (more: object = {}) => call("events.emit", { ...event, ...more }) };
}

describe("an Event", () => {
  it("about the triggering object needs no grant, and names it by the uid that the runtime knows", async () => {
    const { emit, received } = await recorder();
    expect(await emit()).toEqual({ ok: true, json: "null" });
    expect(received.map(({ method, path }) => [method, path])).toEqual([["POST", "/api/v1/namespaces/demo/events"]]);
    expect(received[0]?.body).toMatchObject({
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace: "demo", name: expect.stringMatching(/^settings\.[0-9a-f]+$/) },
      involvedObject: { ...settings, uid: "u1" },
      type: "Normal",
      reason: "Copied",
      message: "copied to team-b",
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      source: { component: "watchfire/f" },
    });
  });

  it("about what stands for a schedule needs a grant: it is no object", async () => {
    const schedule = { apiVersion: "watchfire.dev/v1alpha1", kind: "Schedule", name: "nightly" };
    const object = { ...schedule, namespace: "", uid: "" };
    const { access, attempt, received } = await accessTo({ script: () => ({ body: {} }) });
    const args = JSON.stringify({ ...event, object: schedule });
    const reply = await access.call({ ...caller, object }, "events.emit", args, attempt.signal);
    expect(errorOf(reply).details).toMatchObject({ refusedBy: "runtime" });
    expect(received).toEqual([]);
  });

  it("about another object, or another of that name, needs `create events` in its namespace", async () => {
    const none = await recorder();
    for (const object of [
      { ...settings, name: "other" },
      { ...settings, uid: "u2" },
      { ...settings, namespace: "b" },
    ]) {
      expect(errorOf(await none.emit({ object })).details).toEqual({
        refusedBy: "runtime",
        missingRule: `- { apiGroups: [""], resources: [events], verbs: [create], namespaces: [${object.namespace}] }`,
      });
    }
    expect(none.received).toEqual([]);
    for (const group of ["", "events.k8s.io"]) {
      const rule = { apiGroups: [group], resources: ["events"], verbs: ["create"], namespaces: ["b"] };
      const some = await recorder({ manifest: { permissions: [rule] } });
      expect((await some.emit({ object: { ...settings, namespace: "b" } })).ok).toBe(true);
      expect(some.received[0]?.path).toBe("/api/v1/namespaces/b/events");
    }
  });

  it("about a cluster-scoped object lies in `default`", async () => {
    const rule = { apiGroups: [""], resources: ["events"], verbs: ["create"] };
    const { emit, received } = await recorder({ manifest: { permissions: [rule] } });
    await emit({ object: { apiVersion: "v1", kind: "Node", name: "n1" } });
    expect(received[0]?.path).toBe("/api/v1/namespaces/default/events");
  });

  it("that repeats is one Event with a count", async () => {
    const { emit, received, clock } = await recorder();
    await Promise.all([emit(), emit()]);
    await clock.advance(60_000);
    await emit();
    expect(received.map(({ method }) => method)).toEqual(["POST", "PATCH", "PATCH"]);
    expect(eventsOf(received)).toMatchObject([
      { count: 3, firstTimestamp: "2026-01-01T00:00:00Z", lastTimestamp: "2026-01-01T00:01:00Z" },
    ]);
  });

  it("that the API server has forgotten meanwhile is written anew", async () => {
    let forgotten = false;
    const script = ({ method }: Received) => (method === "PATCH" && forgotten ? status(404, "NotFound") : { body: {} });
    const { emit, received } = await recorder({ script });
    await emit();
    forgotten = true;
    expect((await emit()).ok).toBe(true);
    expect(received.map(({ method }) => method)).toEqual(["POST", "PATCH", "POST"]);
    expect(received[2]?.body).toMatchObject({ count: 2 });
  });

  it("of many messages about one thing is one Event after the tenth", async () => {
    const { emit, received } = await recorder();
    for (let n = 0; n < 20; n++) await emit({ message: `message ${n}` });
    const events = eventsOf(received);
    expect(events.length).toBe(11);
    expect(events.at(-1)).toMatchObject({ count: 10, message: "(combined from similar events): message 19" });
  });

  it("above the function's rate is not written, and does not fail the handler", async () => {
    const { emit, received, clock } = await recorder();
    for (let n = 0; n < 300; n++) expect((await emit()).ok).toBe(true);
    expect(received.length).toBe(100);
    await clock.advance(1000);
    await emit();
    expect(received.length).toBe(101);
    expect(received.at(-1)?.body).toMatchObject({ count: 301 });
  });

  it("has a message of at most 1024 bytes, cut between two characters", async () => {
    const { emit, received } = await recorder();
    await emit({ message: "ä€".repeat(1000) });
    const [message = ""] = eventsOf(received).map((written) => String(written.message));
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024);
    expect(message).toMatch(/^(?:ä€)+ä?…$/);
  });

  it("has a valid name whatever the object is called", async () => {
    const rule = { apiGroups: [""], resources: ["events"], verbs: ["create"] };
    const { emit, received } = await recorder({ manifest: { permissions: [rule] } });
    const names = [
      "system:node",
      "A_b.-.c",
      "x".repeat(300),
      ":",
      "Dev Team",
      "grüppe",
      "İ",
      "a#b",
      "...",
      "a.-.-",
      "😀",
    ];
    for (const name of names) {
      await emit({ object: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", name } });
    }
    for (const { body } of received) {
      const { name } = (body as { metadata: { name: string } }).metadata;
      expect(name).toMatch(/^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/);
    }
    expect(received.length).toBe(names.length);
  });

  it("into a namespace that goes is let go, and any other failure is the handler's to know", async () => {
    const details = { causes: [{ reason: "NamespaceTerminating", message: "" }] };
    const going = await recorder({ script: () => status(403, "Forbidden", { details }) });
    expect((await going.emit()).ok).toBe(true);
    const forbidden = await recorder({ script: () => status(403, "Forbidden") });
    expect(errorOf(await forbidden.emit())).toMatchObject({
      type: "ForbiddenError",
      details: { refusedBy: "apiserver", missingRule: expect.stringContaining("resources: [events], verbs: [create]") },
    });
  });
});
