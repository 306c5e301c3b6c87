// A request that creates the object that its path names is authorized for that name; a POST names no object.
import { beforeAll, expect, test } from "vitest";
import { patchType } from "../target/client.ts";
import { admin, createNamespace, eventually, unique } from "../target/fixture.ts";

const apiGroup = "rbac.authorization.k8s.io";
let namespace: string;
let leases: string;
beforeAll(async () => {
  namespace = await createNamespace();
  leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
});

/** Creates a user who has the verbs for the Lease `mine`; returns what sends requests as that user, once the grant takes effect. */
async function userWith(...verbs: string[]) {
  const user = unique("user");
  const rbac = `/apis/${apiGroup}/v1/namespaces/${namespace}`;
  const rule = { apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: ["mine"] };
  await admin.post(`${rbac}/roles`, { metadata: { name: user }, rules: [{ ...rule, verbs: ["get", ...verbs] }] });
  await admin.post(`${rbac}/rolebindings`, {
    metadata: { name: user },
    roleRef: { apiGroup, kind: "Role", name: user },
    subjects: [{ apiGroup, kind: "User", name: user }],
  });
  const headers = { "impersonate-user": user };
  await eventually(
    () => admin.reply("GET", `${leases}/mine`, { headers }),
    ({ status }) => status === 404,
  );
  return async (method: "POST" | "PUT" | "PATCH", name: string, type?: string) => {
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name }, spec: {} };
    const { status, body } = await admin.reply(method, method === "POST" ? leases : `${leases}/${name}`, {
      headers,
      query: { dryRun: "All", ...(type === patchType.apply && { fieldManager: "suite" }) },
      ...(type === undefined ? { body: lease } : { body: JSON.stringify(lease), type }),
    });
    const refused = / (".*" )?is forbidden: User ".*" (cannot .*) resource/.exec(status === 403 ? body.message : "");
    return refused ? `${refused[1] ?? ""}${refused[2]}` : status;
  };
}

test("the right to create by name holds for an apply and a PUT of that name, and for no POST", async () => {
  const send = await userWith("create", "update", "patch");
  expect(await send("PATCH", "mine", patchType.apply)).toBe(201);
  expect(await send("PUT", "mine")).toBe(201);
  expect(await send("POST", "mine")).toBe("cannot create");
  expect(await send("PATCH", "mine", patchType.merge)).toBe(404);
  expect(await send("PATCH", "other", patchType.apply)).toBe('"other" cannot patch');
});

test("an apply or a PUT that creates is refused without the right to create", async () => {
  const send = await userWith("update", "patch");
  expect(await send("PATCH", "mine", patchType.apply)).toBe('"mine" cannot create');
  expect(await send("PUT", "mine")).toBe('"mine" cannot create');
  expect(await send("PATCH", "mine", patchType.merge)).toBe(404);
});

test("the right to create alone allows no apply and no PUT", async () => {
  const send = await userWith("create");
  expect(await send("PATCH", "mine", patchType.apply)).toBe('"mine" cannot patch');
  expect(await send("PUT", "mine")).toBe('"mine" cannot update');
});
