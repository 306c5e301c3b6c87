import { beforeAll, describe, expect, test } from "vitest";
import { type Body, patchType } from "../target/client.ts";
import { admin, createNamespace, unique } from "../target/fixture.ts";

let namespace: string;
let path: string;
beforeAll(async () => {
  namespace = await createNamespace();
  path = `/api/v1/namespaces/${namespace}/configmaps`;
});
const made = async (object: object = {}): Promise<string> => {
  const name = unique("p");
  await admin.post(path, { metadata: { name }, ...object });
  return `${path}/${name}`;
};

describe("a JSON patch", () => {
  test("runs its operations in order", async () => {
    const at = await made({ data: { a: "1" } });
    const patched = await admin.patch(
      at,
      [
        { op: "test", path: "/data/a", value: "1" },
        { op: "add", path: "/data/b", value: "2" },
        { op: "copy", from: "/data/b", path: "/data/c" },
        { op: "move", from: "/data/a", path: "/data/d" },
        { op: "replace", path: "/data/b", value: "3" },
        { op: "add", path: "/metadata/labels", value: { "my.domain/x": "y" } },
        { op: "remove", path: "/metadata/labels/my.domain~1x" },
      ],
      "json",
    );
    expect(patched.data).toEqual({ b: "3", c: "2", d: "1" });
  });

  test("whose test fails is Invalid and changes nothing", async () => {
    const at = await made({ data: { a: "1" } });
    const body = [
      { op: "replace", path: "/data/a", value: "2" },
      { op: "test", path: "/data/a", value: "1" },
    ];
    const reply = await admin.reply("PATCH", at, { body, type: patchType.json });
    expect(reply.status).toBe(422);
    expect(reply.body.reason).toBe("Invalid");
    expect((await admin.get(at)).data).toEqual({ a: "1" });
  });

  test("that removes what is not there is Invalid", async () => {
    const reply = await admin.reply("PATCH", await made(), {
      body: [{ op: "remove", path: "/data/none" }],
      type: patchType.json,
    });
    expect(reply.status).toBe(422);
  });

  test("that is not a list of operations is BadRequest", async () => {
    const reply = await admin.reply("PATCH", await made(), { body: { op: "add" }, type: patchType.json });
    expect(reply.status).toBe(400);
  });
});

describe("a merge patch", () => {
  test("merges maps, replaces the rest, and removes by null", async () => {
    const at = await made({ data: { a: "1", b: "2" } });
    const patched = await admin.patch(at, { data: { a: null, c: "3" }, metadata: { finalizers: [] } });
    expect(patched.data).toEqual({ b: "2", c: "3" });
  });

  test("with a resourceVersion is a conflict when the object is newer", async () => {
    const at = await made();
    const { resourceVersion } = (await admin.get(at)).metadata;
    await admin.patch(at, { data: { k: "1" } });
    const reply = await admin.reply("PATCH", at, {
      body: { metadata: { resourceVersion }, data: { k: "2" } },
      type: patchType.merge,
    });
    expect(reply.status).toBe(409);
    expect(reply.body.reason).toBe("Conflict");
  });

  test("cannot change an object's name or uid", async () => {
    const at = await made();
    const { uid } = (await admin.get(at)).metadata;
    const reply = await admin.reply("PATCH", at, { body: { metadata: { name: "other" } }, type: patchType.merge });
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect((await admin.get(at)).metadata.uid).toBe(uid);
  });

  test("as a dry run answers with the change and stores none", async () => {
    const at = await made();
    expect((await admin.patch(at, { data: { k: "v" } }, "merge", { dryRun: "All" })).data).toEqual({ k: "v" });
    expect((await admin.get(at)).data).toBeUndefined();
  });

  test("of an object that is not there is NotFound", async () => {
    expect((await admin.reply("PATCH", `${path}/absent`, { body: {}, type: patchType.merge })).status).toBe(404);
  });

  test("many at once all succeed, and all of them show", async () => {
    const at = await made();
    await Promise.all(Array.from({ length: 5 }, (_, index) => admin.patch(at, { data: { [`k${index}`]: "v" } })));
    expect(Object.keys((await admin.get(at)).data)).toHaveLength(5);
  });
});

describe("a strategic merge patch", () => {
  const container = (name: string, image: string) => ({ name, image });
  const deployment = async (): Promise<string> => {
    const name = unique("d");
    const labels = { app: name };
    const spec = { containers: [container("one", "i:1"), container("two", "i:1")] };
    const all = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await admin.post(all, {
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    });
    return `${all}/${name}`;
  };
  const images = (object: Body) =>
    Object.fromEntries(
      object.spec.template.spec.containers.map((c: { name: string; image: string }) => [c.name, c.image]),
    );
  const pod = (spec: object) => ({ spec: { template: { spec } } });

  test("merges containers by their names", async () => {
    const patched = await admin.patch(
      await deployment(),
      pod({ containers: [{ name: "two", image: "i:2" }] }),
      "strategic",
    );
    expect(images(patched)).toEqual({ one: "i:1", two: "i:2" });
  });

  test("adds a container of a new name", async () => {
    const patched = await admin.patch(
      await deployment(),
      pod({ containers: [container("three", "i:3")] }),
      "strategic",
    );
    expect(images(patched)).toEqual({ one: "i:1", two: "i:1", three: "i:3" });
  });

  test("removes a container by $patch: delete", async () => {
    const patched = await admin.patch(
      await deployment(),
      pod({ containers: [{ name: "one", $patch: "delete" }] }),
      "strategic",
    );
    expect(images(patched)).toEqual({ two: "i:1" });
  });

  test("replaces a list by $patch: replace", async () => {
    const containers = [container("only", "i:9"), { $patch: "replace" }];
    expect(images(await admin.patch(await deployment(), pod({ containers }), "strategic"))).toEqual({ only: "i:9" });
  });

  test("merges env by name inside a container", async () => {
    const at = await deployment();
    const env = (list: object[]) => pod({ containers: [{ name: "one", env: list }] });
    await admin.patch(
      at,
      env([
        { name: "A", value: "1" },
        { name: "B", value: "2" },
      ]),
      "strategic",
    );
    const patched = await admin.patch(at, env([{ name: "B", value: "3" }]), "strategic");
    const one = patched.spec.template.spec.containers.find((c: { name: string }) => c.name === "one");
    expect(Object.fromEntries(one.env.map((e: { name: string; value: string }) => [e.name, e.value]))).toEqual({
      A: "1",
      B: "3",
    });
  });
});
