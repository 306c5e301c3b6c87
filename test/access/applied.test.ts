import { describe, expect, it } from "vitest";
import { AppliedObjects } from "../../runtime/access/applied.ts";
import type { KeptObjects } from "../../runtime/access/kube-calls.ts";
import { type AccessSetup, accessTo, everything, status } from "./api-server.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
const wanted = (a: string) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "demo" },
  data: { a },
});

/** An API server that gives each write a new version, and a function that keeps the object as `known`. */
async function applying({ known = { version: 0 }, ...setup }: AccessSetup & { known?: { version: number } } = {}) {
  let version = 0;
  const keeps: KeptObjects = {
    kept: () =>
      known.version > 0 ? { state: `0 ${known.version}`, body: Buffer.from(`"kept ${known.version}"`) } : undefined,
    stateOf: (_, __, resourceVersion) => `0 ${resourceVersion}`,
  };
  const nothing = { get: () => "null", list: () => "{}", age: () => "{}" };
  const parts = await accessTo({
    manifest: { permissions: [everything] },
    script: () => ({ body: { metadata: { resourceVersion: String(++version) } } }),
    reads: { ...nothing, ...keeps },
    ...setup,
  });
  const apply = (object: object, more: object = { skipUnchanged: true }) =>
    parts.call("kube.apply", { object, ...more });
  return { ...parts, apply, known };
}

describe("an apply that need not be sent if it changes nothing", () => {
  it("is answered from memory while the object is as the same apply left it", async () => {
    const { apply, known, received } = await applying();
    await apply(wanted("1"));
    known.version = 1;
    expect(await apply(wanted("1"))).toEqual({ ok: true, json: '"kept 1"' });
    expect(received).toHaveLength(1);
  });

  it.each<[string, (world: Awaited<ReturnType<typeof applying>>) => unknown]>([
    ["the object is not known yet", ({ known }) => (known.version = 0)],
    ["somebody else has written the object", ({ known }) => (known.version = 7)],
    ["the function has patched it since", ({ call }) => call("kube.patch", { ref, patch: { data: { a: "2" } } })],
    ["the function has written its status", ({ call }) => call("kube.patchStatus", { ref, patch: { status: {} } })],
    ["the function has applied it without the option since", ({ apply }) => apply(wanted("2"), {})],
  ])("is sent if %s", async (_, happens) => {
    const world = await applying();
    await world.apply(wanted("1"));
    world.known.version = 1;
    await happens(world);
    const before = world.received.length;
    await world.apply(wanted("1"));
    expect(world.received).toHaveLength(before + 1);
  });

  it("is sent if it is another than the function's last one", async () => {
    const { apply, known, received } = await applying();
    for (const [index, a] of ["1", "2", "1"].entries()) {
      known.version = index;
      await apply(wanted(a));
    }
    expect(received).toHaveLength(3);
  });

  it("is sent again after a refusal", async () => {
    const world = await applying({ script: () => status(409, "Conflict"), known: { version: 1 } });
    for (let time = 0; time < 2; time++) await world.apply(wanted("1"));
    expect(world.received).toHaveLength(2);
  });

  it("is sent each time by a function that keeps no such objects", async () => {
    const { apply, received } = await applying({ reads: undefined });
    for (let time = 0; time < 3; time++) await apply(wanted("1"));
    expect(received).toHaveLength(3);
  });

  it("needs the same permission as one that is sent", async () => {
    const { apply, known, functions } = await applying();
    await apply(wanted("1"));
    known.version = 1;
    const manifest = functions.get("f");
    if (manifest) functions.set("f", { ...manifest, permissions: [] });
    expect(await apply(wanted("1"))).toMatchObject({ ok: false, error: { type: "ForbiddenError" } });
  });
});

describe("what is remembered of applies", () => {
  const path = "/api/v1/namespaces/demo/configmaps/settings";
  const kept = { state: "0 1", body: Buffer.from("{}") };

  it.each(["before its answer", "after its answer"])("is forgotten if another write ends %s", (when) => {
    const applied = new AppliedObjects();
    const left = applied.begin("f", path, "body");
    if (when === "before its answer") applied.forget("f", path);
    left("0 1");
    if (when === "after its answer") applied.forget("f", path);
    expect(applied.isApplied("f", path, "body", kept)).toBe(false);
  });

  it("is one function's alone", () => {
    const applied = new AppliedObjects();
    applied.begin("f", path, "body")("0 1");
    expect(applied.isApplied("f", path, "body", kept)).toBe(true);
    expect(applied.isApplied("g", path, "body", kept)).toBe(false);
  });

  it("has a bound: the oldest is forgotten", () => {
    const applied = new AppliedObjects();
    for (let no = 0; no <= 10_000; no++) applied.begin("f", `${path}-${no}`, "body")("0 1");
    expect(applied.isApplied("f", `${path}-0`, "body", kept)).toBe(false);
    expect(applied.isApplied("f", `${path}-1`, "body", kept)).toBe(true);
  });
});
