import { beforeAll, describe, expect, test } from "vitest";
import { admin, createNamespace, unique } from "../target/fixture.ts";

describe("a refusal", () => {
  let path: string;
  let namespace: string;
  beforeAll(async () => {
    namespace = await createNamespace();
    path = `/api/v1/namespaces/${namespace}/configmaps`;
  });

  test("of an object that is not there is NotFound, and names it", async () => {
    const reply = await admin.reply("GET", `${path}/absent`);
    expect(reply.status).toBe(404);
    expect(reply.body).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: 'configmaps "absent" not found',
      reason: "NotFound",
      details: { name: "absent", kind: "configmaps" },
      code: 404,
    });
  });

  test("of a grouped kind names its group", async () => {
    const reply = await admin.reply("GET", `/apis/apps/v1/namespaces/${namespace}/deployments/absent`);
    expect(reply.body).toMatchObject({
      message: 'deployments.apps "absent" not found',
      details: { name: "absent", group: "apps", kind: "deployments" },
    });
  });

  test("of a second create is AlreadyExists", async () => {
    const name = unique("twice");
    await admin.post(path, { metadata: { name } });
    const reply = await admin.reply("POST", path, { body: { metadata: { name } } });
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({
      reason: "AlreadyExists",
      code: 409,
      message: `configmaps "${name}" already exists`,
      details: { name, kind: "configmaps" },
    });
  });

  test("of a wrong name is Invalid with the field as its cause", async () => {
    const reply = await admin.reply("POST", path, { body: { metadata: { name: "Not_A_Name" } } });
    expect(reply.status).toBe(422);
    expect(reply.body).toMatchObject({
      reason: "Invalid",
      code: 422,
      details: {
        name: "Not_A_Name",
        kind: "ConfigMap",
        causes: [{ reason: "FieldValueInvalid", field: "metadata.name" }],
      },
    });
    expect(reply.body.message).toMatch(
      /^ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain/,
    );
  });

  test("of a wrong label is Invalid with the field as its cause", async () => {
    const reply = await admin.reply("POST", path, {
      body: { metadata: { name: unique("l"), labels: { a: "not valid!" } } },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toMatchObject([{ reason: "FieldValueInvalid", field: "metadata.labels" }]);
  });

  test("of a create without a name is Invalid: the name is required", async () => {
    const reply = await admin.reply("POST", path, { body: { metadata: {} } });
    expect(reply.status).toBe(422);
    expect(reply.body.details.causes).toMatchObject([{ reason: "FieldValueRequired", field: "metadata.name" }]);
    expect(reply.body.message).toContain("name or generateName is required");
  });

  test("of a value of the wrong type is BadRequest", async () => {
    const reply = await admin.reply("POST", path, { body: { metadata: { name: unique("t") }, data: { k: 1 } } });
    expect(reply.status).toBe(400);
    expect(reply.body.reason).toBe("BadRequest");
    expect(reply.body.message).toContain("cannot unmarshal number");
  });

  test("of a body that is not JSON is BadRequest", async () => {
    const reply = await admin.reply("POST", path, { body: "{" });
    expect(reply.status).toBe(400);
    expect(reply.body).toMatchObject({ kind: "Status", reason: "BadRequest" });
  });

  test("of a body of another kind is BadRequest", async () => {
    const reply = await admin.reply("POST", path, {
      body: { apiVersion: "v1", kind: "Secret", metadata: { name: "s" } },
    });
    expect(reply.status).toBe(400);
    expect(reply.body.reason).toBe("BadRequest");
    expect(reply.body.message).toContain("Secret");
  });

  test("of a body in another namespace is BadRequest", async () => {
    const reply = await admin.reply("POST", path, { body: { metadata: { name: "n", namespace: "default" } } });
    expect(reply.status).toBe(400);
    expect(reply.body.message).toBe(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  });

  test("of a resourceVersion at creation says that it must not be set", async () => {
    const reply = await admin.reply("POST", path, { body: { metadata: { name: unique("rv"), resourceVersion: "5" } } });
    expect(reply.status).toBe(500);
    expect(reply.body.message).toContain("resourceVersion should not be set on objects to be created");
  });

  test("of a create in a namespace that is not there is NotFound", async () => {
    const reply = await admin.reply("POST", "/api/v1/namespaces/never-made/configmaps", {
      body: { metadata: { name: "n" } },
    });
    expect(reply.status).toBe(404);
    expect(reply.body.message).toBe('namespaces "never-made" not found');
  });

  test("of a path that nothing serves is 404", async () => {
    for (const unknown of ["/api/v1/nothings", "/apis/no.group/v1/things", "/apis/apps/v9/deployments"])
      expect((await admin.reply("GET", unknown)).status).toBe(404);
  });

  test("of a method that a path does not have is 405", async () => {
    const reply = await admin.reply("POST", `${path}/some-name`, { body: { metadata: { name: "some-name" } } });
    expect(reply.status).toBe(405);
    expect(reply.body).toMatchObject({ kind: "Status", reason: "MethodNotAllowed", code: 405 });
  });

  test("of a representation that cannot be given is 406", async () => {
    const reply = await admin.reply("GET", path, { headers: { accept: "text/html" } });
    expect(reply.status).toBe(406);
    expect(reply.body).toMatchObject({ kind: "Status", reason: "NotAcceptable", code: 406 });
    expect(reply.body.message).toContain("application/json");
  });

  test("of a patch type that does not exist is 415", async () => {
    const name = unique("p");
    await admin.post(path, { metadata: { name } });
    const reply = await admin.reply("PATCH", `${path}/${name}`, { body: {}, type: "application/json" });
    expect(reply.status).toBe(415);
    expect(reply.body).toMatchObject({ reason: "UnsupportedMediaType", code: 415 });
    expect(reply.body.message).toContain("Unsupported Media Type");
  });

  test("of a body type that does not exist is 415", async () => {
    const reply = await admin.reply("POST", path, { body: "<a/>", type: "application/xml" });
    expect(reply.status).toBe(415);
  });

  test("of an unknown dryRun value is Invalid", async () => {
    const reply = await admin.reply("POST", path, {
      body: { metadata: { name: unique("d") } },
      query: { dryRun: "Some" },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("dryRun");
  });

  test("of somebody unknown is 401", async () => {
    const reply = await admin.reply("GET", path, { headers: { authorization: "Bearer nobody" } });
    expect(reply.status).toBe(401);
    expect(reply.body).toMatchObject({ kind: "Status", reason: "Unauthorized", code: 401, message: "Unauthorized" });
  });
});
