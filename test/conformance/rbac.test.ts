import { beforeAll, describe, expect, test } from "vitest";
import { Client } from "../target/client.ts";
import { admin, asServiceAccount, createNamespace, eventually, removeAtEnd, unique } from "../target/fixture.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const reviews = "/apis/authorization.k8s.io/v1";
let namespace: string;
let secrets: string;
beforeAll(async () => {
  namespace = await createNamespace();
  secrets = `/api/v1/namespaces/${namespace}/secrets`;
});

/** Creates a ServiceAccount with `rules` in the namespace. Returns its client once the grant takes effect. */
async function granted(rules: object[]): Promise<{ name: string; client: Client; user: string }> {
  const name = unique("sa");
  await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
  await admin.post(`${rbac}/namespaces/${namespace}/roles`, { metadata: { name }, rules });
  await bind(name, "Role", name);
  return { name, client: await asServiceAccount(namespace, name), user: `system:serviceaccount:${namespace}:${name}` };
}

async function bind(account: string, kind: "Role" | "ClusterRole", role: string): Promise<void> {
  await admin.post(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: unique("bind") },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: role },
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
  });
}

/** The authorizer sees a binding a moment after it is written. */
const becomes = (client: Client, path: string, status: number) =>
  eventually(
    () => client.reply("GET", path),
    (reply) => reply.status === status,
  );

describe.concurrent("a role", () => {
  test("grants what it names, and nothing else", async () => {
    const { client, user } = await granted([
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] },
    ]);
    await becomes(client, secrets, 200);
    const reply = await client.reply("POST", secrets, { body: { metadata: { name: "s" } } });
    expect(reply.status).toBe(403);
    expect(reply.body).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: `secrets is forbidden: User "${user}" cannot create resource "secrets" in API group "" in the namespace "${namespace}"`,
      reason: "Forbidden",
      details: { kind: "secrets" },
      code: 403,
    });
  });

  test("ends at its namespace", async () => {
    const { client, user } = await granted([{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list"] }]);
    await becomes(client, secrets, 200);
    expect((await client.reply("GET", "/api/v1/namespaces/default/secrets")).status).toBe(403);
    const reply = await client.reply("GET", "/api/v1/secrets");
    expect(reply.status).toBe(403);
    expect(reply.body.message).toBe(
      `secrets is forbidden: User "${user}" cannot list resource "secrets" in API group "" at the cluster scope`,
    );
  });

  test("with resourceNames grants those alone, and the refusal names the object", async () => {
    const { client, user } = await granted([
      { apiGroups: [""], resources: ["secrets"], verbs: ["get"], resourceNames: ["mine"] },
    ]);
    await becomes(client, `${secrets}/mine`, 404);
    const reply = await client.reply("GET", `${secrets}/theirs`);
    expect(reply.status).toBe(403);
    expect(reply.body).toMatchObject({
      details: { name: "theirs", kind: "secrets" },
      message: `secrets "theirs" is forbidden: User "${user}" cannot get resource "secrets" in API group "" in the namespace "${namespace}"`,
    });
  });

  test("on a resource does not reach its subresources", async () => {
    const { client, user } = await granted([{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["*"] }]);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await becomes(client, path, 200);
    const reply = await client.reply("GET", `${path}/d/scale`);
    expect(reply.status).toBe(403);
    expect(reply.body.message).toBe(
      `deployments.apps "d" is forbidden: User "${user}" cannot get resource "deployments/scale" in API group "apps" in the namespace "${namespace}"`,
    );
  });

  test("that grants watch by name lets that object be watched, and no collection", async () => {
    const { client } = await granted([
      { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"], resourceNames: ["mine"] },
    ]);
    const selected = { fieldSelector: "metadata.name=mine", timeoutSeconds: 1 };
    const open = await eventually(
      () => client.watch(secrets, selected),
      (watch) => watch.status === 200,
    );
    expect(await open.ended()).toBe("clean");
    using refused = await client.watch(secrets, { timeoutSeconds: 1 });
    expect(refused.status).toBe(403);
  });

  test("that is withdrawn refuses the next request, and cuts no running watch", async () => {
    const { client, name } = await granted([{ apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] }]);
    const list = await becomes(client, secrets, 200);
    using watch = await client.watch(secrets, { resourceVersion: list.body.metadata.resourceVersion });
    await admin.delete(`${rbac}/namespaces/${namespace}/roles/${name}`);
    await becomes(client, secrets, 403);
    const made = await admin.post(secrets, { metadata: { name: unique("seen") } });
    expect((await watch.next()).object.metadata.uid).toBe(made.metadata.uid);
  });

  test("of the cluster, bound in a namespace, grants there alone", async () => {
    const { client, name } = await granted([]);
    const role = unique("reader");
    await admin.post(`${rbac}/clusterroles`, {
      metadata: { name: role },
      rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["list"] }],
    });
    removeAtEnd(`${rbac}/clusterroles/${role}`);
    await bind(name, "ClusterRole", role);
    await becomes(client, secrets, 200);
    expect((await client.reply("GET", "/api/v1/secrets")).status).toBe(403);
  });

  test("of the cluster, bound in the cluster, grants everywhere", async () => {
    const { client, name } = await granted([]);
    const role = unique("reader");
    await admin.post(`${rbac}/clusterroles`, {
      metadata: { name: role },
      rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }],
    });
    await admin.post(`${rbac}/clusterrolebindings`, {
      metadata: { name: role },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "ServiceAccount", name, namespace }],
    });
    removeAtEnd(`${rbac}/clusterroles/${role}`);
    removeAtEnd(`${rbac}/clusterrolebindings/${role}`);
    await becomes(client, "/api/v1/secrets", 200);
  });

  test("cannot be made to grant more than its maker has", async () => {
    const roles = `${rbac}/namespaces/${namespace}/roles`;
    const { client } = await granted([
      { apiGroups: ["rbac.authorization.k8s.io"], resources: ["roles"], verbs: ["get", "list", "create"] },
    ]);
    await becomes(client, roles, 200);
    const reply = await client.reply("POST", roles, {
      body: {
        metadata: { name: unique("more") },
        rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }],
      },
    });
    expect(reply.status).toBe(403);
    expect(reply.body.message).toContain("is attempting to grant RBAC permissions not currently held");
  });

  test("lets a ServiceAccount without one read discovery, and no object", async () => {
    const name = unique("bare");
    await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
    const client = await asServiceAccount(namespace, name);
    expect((await client.reply("GET", "/apis")).status).toBe(200);
    expect((await client.reply("GET", "/version")).status).toBe(200);
    expect((await client.reply("GET", secrets)).status).toBe(403);
  });
});

describe.concurrent("a TokenRequest", () => {
  const request = (spec: object) => ({ apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec });
  const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  const account = async () => {
    const name = unique("sa");
    const made = await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
    return { name, uid: made.metadata.uid, path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token` };
  };

  test("gives a token whose claims name the account and its expiry", async () => {
    const { name, uid, path } = await account();
    const reply = await admin.reply("POST", path, { body: request({ expirationSeconds: 600 }) });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      spec: { expirationSeconds: 600 },
    });
    const claims = claimsOf(reply.body.status.token);
    expect(claims.sub).toBe(`system:serviceaccount:${namespace}:${name}`);
    expect(claims["kubernetes.io"]).toMatchObject({ namespace, serviceaccount: { name, uid } });
    expect(claims.exp - claims.iat).toBe(600);
    expect(new Date(reply.body.status.expirationTimestamp).getTime()).toBe(claims.exp * 1000);
  });

  test("carries the audiences asked for, and by default those of the API server", async () => {
    const { path } = await account();
    const foreign = await admin.post(path, request({ audiences: ["elsewhere"] }));
    expect(claimsOf(foreign.status.token).aud).toEqual(["elsewhere"]);
    const client = new Client({ ...admin.access, token: foreign.status.token, cert: undefined, key: undefined });
    expect((await client.reply("GET", "/version", { headers: {} })).status).toBe(401);
    await client.close();
  });

  test("for less than ten minutes is Invalid", async () => {
    const { path } = await account();
    const reply = await admin.reply("POST", path, { body: request({ expirationSeconds: 60 }) });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("may not specify a duration less than 10 minutes");
  });

  test("for an account that is not there is NotFound", async () => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/absent/token`;
    expect((await admin.reply("POST", path, { body: request({}) })).status).toBe(404);
  });

  test("is worth nothing once its account is gone", async () => {
    const { name, path } = await account();
    const client = await asServiceAccount(namespace, name);
    expect((await client.reply("GET", "/version")).status).toBe(200);
    await admin.delete(path.replace(/\/token$/, ""));
    await becomes(client, "/version", 401);
  });
});

describe.concurrent("an access review", () => {
  test("of oneself tells what is allowed and what is not", async () => {
    const { client } = await granted([{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }]);
    await becomes(client, secrets, 200);
    const ask = async (verb: string) =>
      (
        await client.post(`${reviews}/selfsubjectaccessreviews`, {
          spec: { resourceAttributes: { namespace, verb, resource: "secrets" } },
        })
      ).status;
    expect(await ask("list")).toMatchObject({ allowed: true });
    expect(await ask("delete")).toMatchObject({ allowed: false });
  });

  test("of another tells it to those who may ask", async () => {
    const { client, user } = await granted([{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }]);
    await becomes(client, secrets, 200);
    const spec = {
      user,
      groups: ["system:serviceaccounts"],
      resourceAttributes: { namespace, verb: "list", resource: "secrets" },
    };
    const reply = await admin.reply("POST", `${reviews}/subjectaccessreviews`, { body: { spec } });
    expect(reply.status).toBe(201);
    expect(reply.body).toMatchObject({ kind: "SubjectAccessReview", status: { allowed: true } });
    expect((await client.reply("POST", `${reviews}/subjectaccessreviews`, { body: { spec } })).status).toBe(403);
  });

  test("of one's rules lists them", async () => {
    const rule = { apiGroups: [""], resources: ["secrets"], verbs: ["list"] };
    const { client } = await granted([rule]);
    await becomes(client, secrets, 200);
    const review = await client.post(`${reviews}/selfsubjectrulesreviews`, { spec: { namespace } });
    expect(review.status).toMatchObject({ incomplete: false });
    expect(review.status.resourceRules).toContainEqual(rule);
  });

  test("of a token tells whose it is", async () => {
    const { client, user } = await granted([]);
    const token = client.access.token;
    const review = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token } });
    expect(review.status).toMatchObject({ authenticated: true, user: { username: user } });
    const bad = await admin.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token: "nobody" } });
    expect(bad.status.authenticated ?? false).toBe(false);
  });
});

describe.concurrent("impersonation", () => {
  test("acts with the powers of the other", async () => {
    const { client, user } = await granted([{ apiGroups: [""], resources: ["secrets"], verbs: ["list"] }]);
    await becomes(client, secrets, 200);
    const headers = { "impersonate-user": user };
    expect((await admin.reply("GET", secrets, { headers })).status).toBe(200);
    const reply = await admin.reply("GET", "/api/v1/nodes", { headers });
    expect(reply.status).toBe(403);
    expect(reply.body.message).toContain(`User "${user}" cannot list resource "nodes"`);
  });

  test("is refused to those who may not", async () => {
    const { client, user } = await granted([]);
    const reply = await client.reply("GET", secrets, { headers: { "impersonate-user": "admin" } });
    expect(reply.status).toBe(403);
    expect(reply.body.message).toContain(`User "${user}" cannot impersonate`);
  });

  test("shows in a review of oneself", async () => {
    const headers = { "impersonate-user": "jane", "impersonate-group": "team" };
    const reply = await admin.reply("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { body: {}, headers });
    expect(reply.body.status.userInfo).toMatchObject({ username: "jane", groups: ["team", "system:authenticated"] });
  });
});
