import { expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { admin, createNamespace, describeControllers, eventually, gone, unique } from "../target/fixture.ts";

const at = (namespace: string, resource: string) => `/api/v1/namespaces/${namespace}/${resource}`;
const ownerOf = (owner: Body, rest: object = {}) => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  ...rest,
});

describeControllers("a namespace", { concurrent: true }, () => {
  test("is Active, carries its name as a label, and has the finalizer kubernetes", async () => {
    const name = await createNamespace();
    expect(await admin.get(`/api/v1/namespaces/${name}`)).toMatchObject({
      metadata: { labels: { "kubernetes.io/metadata.name": name } },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  });

  test("receives the ServiceAccount default and the ConfigMap kube-root-ca.crt", async () => {
    const name = await createNamespace();
    await eventually(
      () => admin.reply("GET", `${at(name, "serviceaccounts")}/default`),
      (reply) => reply.status === 200,
    );
    const ca = await eventually(
      () => admin.reply("GET", `${at(name, "configmaps")}/kube-root-ca.crt`),
      (reply) => reply.status === 200,
    );
    expect(ca.body.data["ca.crt"]).toContain("BEGIN CERTIFICATE");
  });

  test("that is deleted terminates, is emptied, and goes", async () => {
    const name = await createNamespace();
    await admin.post(at(name, "secrets"), { metadata: { name: "inside" } });
    const { resourceVersion } = (await admin.get(at(name, "secrets"))).metadata;
    using watch = await admin.watch(at(name, "secrets"), { resourceVersion });
    const reply = await admin.reply("DELETE", `/api/v1/namespaces/${name}`);
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ kind: "Namespace", status: { phase: "Terminating" } });
    expect(reply.body.metadata.deletionTimestamp).toBeTruthy();
    await gone(`/api/v1/namespaces/${name}`);
    expect(await watch.next()).toMatchObject({ type: "DELETED", object: { metadata: { name: "inside" } } });
    expect((await admin.get(at(name, "secrets"))).items).toEqual([]);
  });

  test("that terminates waits for finalizers inside, and refuses new objects", async () => {
    const name = await createNamespace();
    await admin.post(at(name, "secrets"), { metadata: { name: "held", finalizers: ["my.domain/hold"] } });
    await admin.delete(`/api/v1/namespaces/${name}`);
    const reply = await eventually(
      () => admin.reply("POST", at(name, "secrets"), { body: { metadata: { name: unique("late") } } }),
      (answer) => answer.status !== 201,
    );
    expect(reply.status).toBe(403);
    expect(reply.body.message).toMatch(
      new RegExp(
        `^secrets "late-.*" is forbidden: unable to create new content in namespace ${name} because it is being terminated$`,
      ),
    );
    expect(reply.body.details.causes).toMatchObject([{ reason: "NamespaceTerminating", field: "metadata.namespace" }]);
    await eventually(
      () => admin.get(`${at(name, "secrets")}/held`),
      (held) => held.metadata.deletionTimestamp !== undefined,
    );
    expect((await admin.get(`/api/v1/namespaces/${name}`)).status.phase).toBe("Terminating");
    await admin.patch(`${at(name, "secrets")}/held`, { metadata: { finalizers: null } });
    await gone(`/api/v1/namespaces/${name}`);
  });

  test("cannot be one of the system's", async () => {
    const reply = await admin.reply("DELETE", "/api/v1/namespaces/kube-system", { query: { dryRun: "All" } });
    expect(reply.status).toBe(403);
    expect(reply.body.message).toContain("this namespace may not be deleted");
  });
});

describeControllers("an owned object", { concurrent: true }, () => {
  test("goes when its last owner is deleted", async () => {
    const namespace = await createNamespace();
    const owner = await admin.post(at(namespace, "configmaps"), { metadata: { name: "owner" } });
    await admin.post(at(namespace, "secrets"), { metadata: { name: "owned", ownerReferences: [ownerOf(owner)] } });
    await admin.delete(`${at(namespace, "configmaps")}/owner`);
    await gone(`${at(namespace, "secrets")}/owned`);
  });

  test("stays while another owner is there", async () => {
    const namespace = await createNamespace();
    const [first, second] = await Promise.all(
      ["first", "second"].map((name) => admin.post(at(namespace, "configmaps"), { metadata: { name } })),
    );
    if (!first || !second) throw new Error("two owners were made");
    const owned = `${at(namespace, "secrets")}/owned`;
    await admin.post(at(namespace, "secrets"), {
      metadata: { name: "owned", ownerReferences: [ownerOf(first), ownerOf(second)] },
    });
    await admin.delete(`${at(namespace, "configmaps")}/first`);
    const left = await eventually(
      () => admin.get(owned),
      (body) => body.metadata.ownerReferences?.length === 1,
    );
    expect(left.metadata.ownerReferences?.[0]?.uid).toBe(second.metadata.uid);
  });

  test("of an owner that is not there goes", async () => {
    const namespace = await createNamespace();
    const ghost = { apiVersion: "v1", kind: "ConfigMap", name: "ghost", uid: "00000000-0000-4000-8000-000000000000" };
    await admin.post(at(namespace, "secrets"), { metadata: { name: "orphan", ownerReferences: [ghost] } });
    await gone(`${at(namespace, "secrets")}/orphan`);
  });

  // Owner and owned are of one kind in the next two tests: the garbage collector watches each kind apart, and lets an owner go at
  // once if it hears of the deletion before it hears of the owned object.
  test("is left behind, without the reference, when its owner is deleted with Orphan", async () => {
    const namespace = await createNamespace();
    const owner = await admin.post(at(namespace, "configmaps"), { metadata: { name: "owner" } });
    const owned = `${at(namespace, "configmaps")}/owned`;
    await admin.post(at(namespace, "configmaps"), { metadata: { name: "owned", ownerReferences: [ownerOf(owner)] } });
    await admin.delete(`${at(namespace, "configmaps")}/owner`, { propagationPolicy: "Orphan" });
    await gone(`${at(namespace, "configmaps")}/owner`);
    expect((await admin.get(owned)).metadata.ownerReferences ?? []).toEqual([]);
  });

  test("goes before its owner when that is deleted with Foreground", async () => {
    const namespace = await createNamespace();
    const owner = await admin.post(at(namespace, "configmaps"), { metadata: { name: "owner" } });
    const owned = `${at(namespace, "configmaps")}/owned`;
    await admin.post(at(namespace, "configmaps"), {
      metadata: {
        name: "owned",
        finalizers: ["my.domain/hold"],
        ownerReferences: [ownerOf(owner, { blockOwnerDeletion: true })],
      },
    });
    const marked = await admin.delete(`${at(namespace, "configmaps")}/owner`, { propagationPolicy: "Foreground" });
    expect(marked.metadata.finalizers).toContain("foregroundDeletion");
    await eventually(
      () => admin.get(owned),
      (body) => body.metadata.deletionTimestamp !== undefined,
    );
    expect((await admin.reply("GET", `${at(namespace, "configmaps")}/owner`)).status).toBe(200);
    await admin.patch(owned, { metadata: { finalizers: null } });
    await gone(`${at(namespace, "configmaps")}/owner`);
  });

  test("of an owned object goes along the chain", async () => {
    const namespace = await createNamespace();
    const grand = await admin.post(at(namespace, "configmaps"), { metadata: { name: "grand" } });
    const parent = await admin.post(at(namespace, "configmaps"), {
      metadata: { name: "parent", ownerReferences: [ownerOf(grand)] },
    });
    await admin.post(at(namespace, "secrets"), { metadata: { name: "child", ownerReferences: [ownerOf(parent)] } });
    await admin.delete(`${at(namespace, "configmaps")}/grand`);
    await gone(`${at(namespace, "configmaps")}/parent`);
    await gone(`${at(namespace, "secrets")}/child`);
  });

  test("cannot have two controllers", async () => {
    const namespace = await createNamespace();
    const owner = await admin.post(at(namespace, "configmaps"), { metadata: { name: "owner" } });
    const reply = await admin.reply("POST", at(namespace, "secrets"), {
      body: {
        metadata: {
          name: "owned",
          ownerReferences: [
            ownerOf(owner, { controller: true }),
            { ...ownerOf(owner, { controller: true }), uid: "other" },
          ],
        },
      },
    });
    expect(reply.status).toBe(422);
    expect(reply.body.message).toContain("Only one reference can have Controller set to true");
  });
});
