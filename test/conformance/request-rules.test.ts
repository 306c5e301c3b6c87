// Unusual patches, options and selectors, and writes to fields that may not change.
import { beforeAll, describe, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { defineWidgets } from "../target/crd.ts";
import { admin, createNamespace, eventually, unique } from "../target/fixture.ts";

let namespace: string;
let configMaps: string;
beforeAll(async () => {
  namespace = await createNamespace();
  configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
});

/** Creates a ConfigMap; gives its path. */
async function configMap(data: Record<string, string> = { a: "b" }): Promise<string> {
  const name = unique("object");
  await admin.post(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
  return `${configMaps}/${name}`;
}

describe("a JSON patch", () => {
  const patched = async (operations: readonly object[]) => {
    const path = await configMap();
    const { status, body } = await admin.reply("PATCH", path, { body: operations, type: patchType.json });
    return [status, status === 200 ? (body.data ?? {}) : body.message];
  };
  const refused = [422, "the server rejected our request due to an error in our request"];

  test.each<[name: string, operations: object[], data: object]>([
    [
      "copies null from a member that is missing",
      [{ op: "copy", from: "/data/z", path: "/data/c" }],
      { a: "b", c: "" },
    ],
    ["finds null in a member that is missing", [{ op: "test", path: "/data/z", value: null }], { a: "b" }],
    ["adds by replacing", [{ op: "replace", path: "/data/z", value: "1" }], { a: "b", z: "1" }],
    [
      "counts a negative index from the end",
      [
        { op: "add", path: "/metadata/finalizers", value: ["x.io/1", "x.io/2"] },
        { op: "remove", path: "/metadata/finalizers/-1" },
        { op: "test", path: "/metadata/finalizers", value: ["x.io/1"] },
        { op: "remove", path: "/metadata/finalizers" },
      ],
      { a: "b" },
    ],
    ["moves", [{ op: "move", from: "/data/a", path: "/data/m" }], { m: "b" }],
  ])("%s", async (_, operations, data) => {
    expect(await patched(operations)).toEqual([200, data]);
  });

  test.each<[name: string, operation: object]>([
    ["removes what is missing", { op: "remove", path: "/data/z" }],
    ["removes what only a prototype has", { op: "remove", path: "/data/valueOf" }],
    ["moves what only a prototype has", { op: "move", from: "/data/hasOwnProperty", path: "/data/m" }],
    ["adds the whole document", { op: "add", path: "", value: {} }],
    ["removes the whole document", { op: "remove", path: "" }],
    ["adds below a text", { op: "add", path: "/data/a/b", value: "x" }],
  ])("is refused that %s", async (_, operation) => {
    expect(await patched([operation])).toEqual(refused);
  });

  test("keeps an escape that is none in a key, which is refused as a key", async () => {
    expect(await patched([{ op: "add", path: "/data/~2", value: "1" }])).toEqual([
      422,
      expect.stringContaining('data[~2]: Invalid value: "~2"'),
    ]);
  });
});

test.each([
  ["uid", "x"],
  ["deletionTimestamp", "2026-01-01T00:00:00Z"],
])("a patch does not change metadata.%s", async (field, value) => {
  const path = await configMap();
  const options = { body: { metadata: { [field]: value } }, type: patchType.merge };
  const { status, body } = await admin.reply("PATCH", path, options);
  expect(status).toBe(422);
  expect(body.message).toContain(`metadata.${field}: Invalid value: "${value}": field is immutable`);
});

test("force is for server-side apply alone", async () => {
  const path = await configMap();
  const { status, body } = await admin.reply("PATCH", path, {
    query: { force: true },
    body: {},
    type: patchType.merge,
  });
  expect([status, body.message]).toEqual([
    422,
    'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  ]);
});

test("a field manager's name has 128 bytes at most", async () => {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: unique("managed") } };
  const reply = await admin.reply("POST", configMaps, { query: { fieldManager: "x".repeat(129) }, body });
  expect([reply.status, reply.body.message]).toEqual([
    422,
    'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
  ]);
});

describe("a list", () => {
  test.each([
    [{ limit: "abc" }, 'strconv.ParseInt: parsing "abc": invalid syntax'],
    [{ watch: "1", timeoutSeconds: "abc" }, 'strconv.ParseInt: parsing "abc": invalid syntax'],
    [{ fieldSelector: "metadata.name=a\\b" }, "invalid field selector: invalid escape sequence: \\b"],
    [{ fieldSelector: "a=b=c" }, "invalid field selector: unescaped character in value: 61"],
  ])("is refused with %j", async (query, message) => {
    const { status, body } = await admin.reply("GET", configMaps, { query });
    expect([status, body.message]).toEqual([400, message]);
  });

  test.each(["", "0"])("that a watch from version %j begins with is not continued", async (resourceVersion) => {
    const query = { watch: "1", continue: "x", resourceVersion, timeoutSeconds: "1" };
    const { status, body } = await admin.reply("GET", configMaps, { query });
    expect([status, body.message]).toEqual([422, expect.stringContaining("is forbidden when continue is provided")]);
  });

  test.each([
    ["/apis/events.k8s.io/v1/events", "involvedObject.kind=Pod", 400],
    ["/apis/events.k8s.io/v1/events", "regarding.kind=Pod", 200],
    ["/apis/events.k8s.io/v1/events", "reason=x", 200],
    ["/apis/apps/v1/replicasets", "status.replicas=0", 400],
    ["/apis/certificates.k8s.io/v1/certificatesigningrequests", "spec.signerName=x", 200],
  ])("of %s by %s is answered with %i", async (path, fieldSelector, status) => {
    expect((await admin.reply("GET", path, { query: { fieldSelector } })).status).toBe(status);
  });
});

test("the right to delete one object by name is no right to delete a collection, whatever the selector", async () => {
  const user = unique("user");
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const apiGroup = "rbac.authorization.k8s.io";
  const rules = [
    { apiGroups: [""], resources: ["configmaps"], resourceNames: ["only"], verbs: ["list", "deletecollection"] },
  ];
  await admin.post(`${rbac}/roles`, { metadata: { name: user }, rules });
  await admin.post(`${rbac}/rolebindings`, {
    metadata: { name: user },
    roleRef: { apiGroup, kind: "Role", name: user },
    subjects: [{ apiGroup, kind: "User", name: user }],
  });
  const options = { query: { fieldSelector: "metadata.name=only" }, headers: { "impersonate-user": user } };
  expect((await admin.reply("GET", configMaps, options)).status).toBe(200);
  const { status, body } = await admin.reply("DELETE", configMaps, options);
  expect(status).toBe(403);
  expect(body.message).toContain(`User "${user}" cannot deletecollection resource "configmaps"`);
});

describe("of custom resources", () => {
  let widgets: Awaited<ReturnType<typeof defineWidgets>>;
  beforeAll(async () => {
    widgets = await defineWidgets();
  });

  test("an apply with a field that is not in the schema is refused", async () => {
    const body = { ...widgets.widget("applied"), spec: { size: 2, bogus: 1 } };
    const { status, body: answer } = await admin.reply("PATCH", `${widgets.in(namespace)}/applied`, {
      query: { fieldManager: "suite" },
      body: JSON.stringify(body),
      type: patchType.apply,
    });
    expect(status).toBe(500);
    expect(answer.message).toMatch(
      /^failed to create typed patch object \(\/applied; .*: \.spec\.bogus: field not decl/,
    );
  });

  test("none is created once the definition is being deleted", async () => {
    const finalizers = ["example.com/held"];
    const held = { ...widgets.widget("held"), metadata: { name: "held", finalizers } };
    await admin.post(widgets.in(namespace), held);
    await admin.delete(widgets.crd);
    const options = { query: { dryRun: "All" }, body: widgets.widget("late") };
    // The real server needs a moment to see the deletion.
    const { body } = await eventually(
      () => admin.reply("POST", widgets.in(namespace), options),
      ({ status }) => status !== 201,
    );
    expect([body.code, body.message]).toEqual([
      403,
      expect.stringContaining(
        '"late" is forbidden: create not allowed while custom resource definition is terminating',
      ),
    ]);
    await admin.reply("PATCH", `${widgets.in(namespace)}/held`, {
      body: { metadata: { finalizers: null } },
      type: patchType.merge,
    });
  });
});
