import { beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace } from "../target/fixture.ts";

const names = (list: Body) => list.items.map((item) => item.metadata.name);

describe("a list", () => {
  let path: string;
  beforeAll(async () => {
    path = `/api/v1/namespaces/${await createNamespace()}/configmaps`;
    for (const [index, name] of ["e", "a", "d", "b", "c"].entries())
      await admin.post(path, { metadata: { name, labels: { parity: index % 2 ? "odd" : "even", own: "yes" } } });
  });
  // kube-root-ca.crt may be created in a namespace at any time, hence the selector.
  const own = { labelSelector: "own=yes" };

  test("carries its kind, its resourceVersion and items in the order of their names, which lack kind and apiVersion", async () => {
    const list = await admin.get(path, own);
    expect(list).toMatchObject({ kind: "ConfigMapList", apiVersion: "v1" });
    expect(list.metadata.resourceVersion).toMatch(/^[1-9][0-9]*$/);
    expect(names(list)).toEqual(["a", "b", "c", "d", "e"]);
    expect(list.items[0]).not.toHaveProperty("kind");
    expect(list.items[0]).not.toHaveProperty("apiVersion");
  });

  test("of nothing has an empty array of items, not null", async () => {
    expect((await admin.get(path, { labelSelector: "own=no" })).items).toEqual([]);
  });

  test("in pages gives every object once, and one resourceVersion", async () => {
    const seen: string[] = [];
    const versions = new Set<string>();
    let token: string | undefined;
    do {
      const page = await admin.get(path, { ...own, limit: 2, continue: token });
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...names(page));
      versions.add(page.metadata.resourceVersion);
      token = page.metadata.continue;
    } while (token);
    expect(seen).toEqual(["a", "b", "c", "d", "e"]);
    expect(versions.size).toBe(1);
  });

  test("in pages is one snapshot: what happens after its first page does not show in the later ones", async () => {
    const own = { labelSelector: "snapshot=yes" };
    for (const name of ["p1", "p2", "p3"])
      await admin.post(path, { metadata: { name, labels: { snapshot: "yes" } }, data: { v: "old" } });
    const first = await admin.get(path, { ...own, limit: 1 });
    await admin.post(path, { metadata: { name: "p2b", labels: { snapshot: "yes" } } });
    await admin.patch(`${path}/p3`, { data: { v: "new" } });
    await admin.delete(`${path}/p2`);
    const rest = await admin.get(path, { ...own, continue: first.metadata.continue });
    expect(names(rest)).toEqual(["p2", "p3"]);
    expect(rest.items[1]?.data).toEqual({ v: "old" });
    expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test("without a selector tells how many items remain", async () => {
    const path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    for (const name of ["a", "b", "c"]) await admin.post(path, { metadata: { name } });
    const first = await admin.get(path, { limit: 1 });
    expect(first.metadata.remainingItemCount).toBe(2);
    const last = await admin.get(path, { limit: 2, continue: first.metadata.continue });
    expect(last.metadata.continue ?? "").toBe("");
    expect(last.metadata).not.toHaveProperty("remainingItemCount");
  });

  test("with a selector does not tell how many items remain", async () => {
    const first = await admin.get(path, { ...own, limit: 1 });
    expect(first.metadata.continue).toBeTruthy();
    expect(first.metadata).not.toHaveProperty("remainingItemCount");
  });

  test("whose limit is met exactly ends without a continue token", async () => {
    const path = `/api/v1/namespaces/${await createNamespace()}/secrets`;
    for (const name of ["a", "b"]) await admin.post(path, { metadata: { name } });
    const page = await admin.get(path, { limit: 2 });
    expect(page.items).toHaveLength(2);
    expect(page.metadata.continue ?? "").toBe("");
  });

  test("refuses a continue token together with a resourceVersion", async () => {
    const first = await admin.get(path, { ...own, limit: 1 });
    const reply = await admin.reply("GET", path, {
      query: { continue: first.metadata.continue, resourceVersion: first.metadata.resourceVersion },
    });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ kind: "Status", status: "Failure", reason: "BadRequest", code: 400 });
  });

  test("refuses a continue token that nobody issued", async () => {
    const reply = await admin.reply("GET", path, { query: { limit: 1, continue: "nonsense" } });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain("continue key is not valid");
  });

  test.each([
    ["parity=even", ["c", "d", "e"]],
    ["parity==odd", ["a", "b"]],
    ["parity!=even,own", ["a", "b"]],
    ["parity in (even,odd),own=yes", ["a", "b", "c", "d", "e"]],
    ["parity notin (odd),own", ["c", "d", "e"]],
    ["own,!parity", []],
  ])("by the label selector %s gives those that it means", async (labelSelector, expected) => {
    expect(names(await admin.get(path, { labelSelector }))).toEqual(expected);
  });

  test("refuses a label selector that cannot be parsed", async () => {
    const reply = await admin.reply("GET", path, { query: { labelSelector: "a in b" } });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ kind: "Status", reason: "BadRequest" });
    expect(reply.body.message).toContain("unable to parse requirement");
  });

  test("by metadata.name and metadata.namespace in a field selector gives those that it means", async () => {
    expect(names(await admin.get(path, { fieldSelector: "metadata.name=b" }))).toEqual(["b"]);
    expect(names(await admin.get(path, { ...own, fieldSelector: "metadata.name!=b" }))).toEqual(["a", "c", "d", "e"]);
    const namespace = path.split("/")[4];
    const everywhere = await admin.get("/api/v1/configmaps", {
      ...own,
      fieldSelector: `metadata.namespace=${namespace}`,
    });
    expect(names(everywhere)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("refuses a field selector on a field that cannot be selected by", async () => {
    const reply = await admin.reply("GET", path, { query: { fieldSelector: "data.x=1" } });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain("data.x");
  });

  test("across namespaces orders by namespace, then by name", async () => {
    const [one, two] = [await createNamespace(), await createNamespace()].sort();
    for (const namespace of [two, one])
      for (const name of ["y", "x"])
        await admin.post(`/api/v1/namespaces/${namespace}/configmaps`, {
          metadata: { name, labels: { across: String(one) } },
        });
    const list = await admin.get("/api/v1/configmaps", { labelSelector: `across=${one}` });
    expect(list.items.map((item) => `${item.metadata.namespace}/${item.metadata.name}`)).toEqual(
      [one, two].flatMap((namespace) => [`${namespace}/x`, `${namespace}/y`]),
    );
  });

  test("of a namespace that does not exist is empty, not an error", async () => {
    expect((await admin.get("/api/v1/namespaces/never-made/configmaps")).items).toEqual([]);
  });

  test("of metadata alone gives PartialObjectMetadata without the rest", async () => {
    const list = await admin.get(path, own, {
      accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    });
    expect(list).toMatchObject({ kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1" });
    expect(names(list)).toEqual(["a", "b", "c", "d", "e"]);
    expect(list.items.every((item) => item.data === undefined)).toBe(true);
  });

  test("in Pods selects by status.phase and spec.nodeName", async () => {
    const namespace = await createNamespace();
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const pod = (name: string) => ({
      metadata: { name },
      spec: {
        automountServiceAccountToken: false,
        serviceAccountName: "runner",
        containers: [{ name: "c", image: "i" }],
      },
    });
    await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: "runner" } });
    await admin.post(pods, pod("waits"));
    await admin.post(pods, pod("runs"));
    await admin.patch(`${pods}/runs/status`, { status: { phase: "Running" } });
    expect(names(await admin.get(pods, { fieldSelector: "status.phase=Running" }))).toEqual(["runs"]);
    expect(names(await admin.get(pods, { fieldSelector: "status.phase!=Running,spec.nodeName=" }))).toEqual(["waits"]);
  });
});
