import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { type Definition, defineWidgets } from "../target/crd.ts";
import { admin, createNamespace, eventually, unique } from "../target/fixture.ts";

describe("a custom resource's schema", () => {
  let widgets: Definition;
  let path: string;
  beforeAll(async () => {
    widgets = await defineWidgets();
    path = widgets.in(await createNamespace());
  });
  const create = (spec: object | undefined, rest: object = {}) =>
    admin.reply("POST", path, { body: { ...widgets.widget(unique("w"), spec), ...rest } });

  test("fills in defaults, those inside of defaults too", async () => {
    const { body } = await create({ size: 2 });
    expect(body.spec).toEqual({ size: 2, colour: "red", replicas: 1, limits: { cpu: "1" } });
  });

  test("fills in a default where the value is null and may not be", async () => {
    const { body } = await create({ size: 2, colour: null, note: null });
    expect(body.spec).toMatchObject({ colour: "red", note: null });
  });

  test("prunes fields that it does not know, at every depth", async () => {
    const { status, body } = await create(
      { size: 2, extra: 1, limits: { gpu: "2" }, parts: [{ name: "a", odd: true }] },
      { more: {} },
    );
    expect(status).toBe(201);
    expect(body.spec).toEqual({ size: 2, colour: "red", replicas: 1, limits: { cpu: "1" }, parts: [{ name: "a" }] });
    expect(body).not.toHaveProperty("more");
  });

  test("keeps unknown fields where it says that they stay", async () => {
    const { body } = await create({ size: 2, free: { any: { thing: [1, "two", null] } } });
    expect(body.spec.free).toEqual({ any: { thing: [1, "two", null] } });
  });

  test.each([
    ["a number out of bounds", { size: 11 }, "spec.size", "FieldValueInvalid", "should be less than or equal to 10"],
    [
      "a number below its bounds",
      { size: 0 },
      "spec.size",
      "FieldValueInvalid",
      "should be greater than or equal to 1",
    ],
    ["a value of the wrong type", { size: "two" }, "spec.size", "FieldValueTypeInvalid", "must be of type integer"],
    [
      "a value outside its enum",
      { size: 2, colour: "green" },
      "spec.colour",
      "FieldValueNotSupported",
      'supported values: "red", "blue"',
    ],
    [
      "a text against its pattern",
      { size: 2, code: "A1" },
      "spec.code",
      "FieldValueInvalid",
      "should match '^[a-z]+$'",
    ],
    [
      "a text that is too long",
      { size: 2, code: "abcdef" },
      "spec.code",
      "FieldValueTooLong",
      "may not be more than 5",
    ],
    ["a missing required field", {}, "spec.size", "FieldValueRequired", "Required value"],
    [
      "a missing field in a list's item",
      { size: 2, parts: [{ value: "v" }] },
      "spec.parts[0].name",
      "FieldValueRequired",
      "Required value",
    ],
    [
      "two items under one key",
      { size: 2, parts: [{ name: "a" }, { name: "a" }] },
      "spec.parts[1]",
      "FieldValueDuplicate",
      "Duplicate value",
    ],
    [
      "a rule that does not hold",
      { size: 2, replicas: 3 },
      "spec",
      "FieldValueInvalid",
      "replicas must not exceed size",
    ],
  ])("refuses %s, and says which", async (_, spec, field, reason, message) => {
    const reply = await create(spec);
    expect(reply.status).toBe(422);
    expect(reply.body).toMatchObject({
      reason: "Invalid",
      code: 422,
      details: { group: widgets.group, kind: "Widget" },
    });
    expect(reply.body.details.causes).toContainEqual(expect.objectContaining({ field, reason }));
    expect(reply.body.message).toContain(message);
  });

  test("names every fault at once", async () => {
    const reply = await create({ size: 11, colour: "green", code: "A1" });
    const fields = reply.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(expect.arrayContaining(["spec.size", "spec.colour", "spec.code"]));
  });

  test("takes numbers and texts where it says int-or-string", async () => {
    expect((await create({ size: 2, port: 80 })).body.spec.port).toBe(80);
    expect((await create({ size: 2, port: "http" })).body.spec.port).toBe("http");
    expect((await create({ size: 2, port: true })).status).toBe(422);
  });

  test("holds for patches and applies as it does for creates", async () => {
    const name = unique("w");
    await admin.post(path, widgets.widget(name));
    const merge = await admin.reply("PATCH", `${path}/${name}`, {
      body: { spec: { size: 99 } },
      type: patchType.merge,
    });
    expect(merge.status).toBe(422);
    const json = await admin.reply("PATCH", `${path}/${name}`, {
      body: [{ op: "remove", path: "/spec/size" }],
      type: patchType.json,
    });
    expect(json.status).toBe(422);
    const apply = await admin.reply("PATCH", `${path}/${name}`, {
      body: widgets.widget(name, { size: 99 }),
      type: patchType.apply,
      query: { fieldManager: "me", force: true },
    });
    expect(apply.status).toBe(422);
    expect((await admin.get(`${path}/${name}`)).spec.size).toBe(3);
  });

  test("holds for the status subresource", async () => {
    const name = unique("w");
    await admin.post(path, widgets.widget(name));
    const wrong = await admin.reply("PATCH", `${path}/${name}/status`, {
      body: { status: { phase: 7 } },
      type: patchType.merge,
    });
    expect(wrong.status).toBe(422);
    const pruned = await admin.patch(`${path}/${name}/status`, { status: { phase: "Up", other: 1 } });
    expect(pruned.status).toEqual({ phase: "Up" });
  });

  test("under fieldValidation Strict refuses what it would prune", async () => {
    const reply = await admin.reply("POST", path, {
      body: widgets.widget(unique("w"), { size: 2, extra: 1 }),
      query: { fieldValidation: "Strict" },
    });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toContain('strict decoding error: unknown field "spec.extra"');
  });

  test("that changes rules the next write; what is stored is defaulted when it is read", async () => {
    const version = (properties: object) => ({
      name: "v1",
      served: true,
      storage: true,
      schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } },
    });
    const changing = await defineWidgets({ versions: [version({ size: { type: "integer" } })] });
    const at = `${changing.in("default")}/w`;
    await admin.post(changing.in("default"), changing.widget("w"));
    await admin.patch(changing.crd, {
      spec: { versions: [version({ size: { type: "integer" }, tier: { type: "string", default: "gold" } })] },
    });
    const seen = await eventually(
      () => admin.reply("GET", at),
      (reply) => reply.body.spec?.tier !== undefined,
    );
    expect(seen.body.spec).toEqual({ size: 3, tier: "gold" });
    await admin.delete(at);
  });

  test("stores members in order, drops a null that may not be, and the last label", async () => {
    const { text } = await create({ size: 2, port: 80, note: "n", free: null });
    expect(text).toContain(
      '"spec":{"colour":"red","limits":{"cpu":"1"},"note":"n","port":80,"replicas":1,"size":2}}\n',
    );
    const name = unique("labelled");
    await admin.post(path, { ...widgets.widget(name), metadata: { name, labels: { a: "b" } } });
    const options = { body: { metadata: { labels: { a: null } } }, type: patchType.merge };
    const { body } = await admin.reply("PATCH", `${path}/${name}`, options);
    expect(body.metadata).not.toHaveProperty("labels");
  });

  describe("with formats", () => {
    let timed: Definition;
    beforeAll(async () => {
      const properties = {
        when: { type: "string", format: "date-time" },
        lasts: { type: "string", format: "duration" },
      };
      const schema = { type: "object", properties: { spec: { type: "object", properties } } };
      timed = await defineWidgets({
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      });
    });

    test.each([
      [{ when: "2026-06-30T23:59:59Z" }, 201],
      [{ when: "2026-06-30T23:59:60Z" }, 422],
      [{ lasts: "1h30m" }, 201],
      [{ lasts: "1 hour" }, 201],
      [{ lasts: "P1D" }, 201],
      [{ lasts: "2 weeks" }, 201],
      [{ lasts: "0" }, 201],
      [{ lasts: "5" }, 422],
      [{ lasts: "1 year" }, 422],
      [{ lasts: "soon" }, 422],
    ])("answers %j with %i", async (spec, status) => {
      const body = { ...timed.widget("timed"), spec };
      const reply = await admin.reply("POST", timed.in("default"), { query: { dryRun: "All" }, body });
      expect(reply.status).toBe(status);
    });
  });
});
