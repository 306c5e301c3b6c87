// Sends the chart's objects to a real API server with strict field validation and the restricted pod security standard.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Body, Client } from "../target/client.ts";
import { type OwnTarget, startTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { namespace, only, render, renderAs, scenarios, valuesOf, workload } from "./helm.ts";

const real = assetsFolder() !== undefined;
if (!real) process.stderr.write("the chart's objects meet no real API server: KUBEBUILDER_ASSETS is not set\n");

describe.skipIf(!real)("a real API server", () => {
  let target: OwnTarget;
  let admin: Client;
  /** The collection's path of each apiVersion and kind. */
  const paths = new Map<string, (namespace?: string) => string>();

  beforeAll(async () => {
    target = await startTarget("real");
    admin = new Client(target.access);
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await admin.post("/api/v1/namespaces", { metadata: { name: namespace, labels } });
    for (const name of ["watchfire", "events-runtime"]) {
      await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } });
    }
    // Namespaces that ci/sets-values.yaml names.
    for (const name of ["team-a", "team-b"]) await admin.post("/api/v1/namespaces", { metadata: { name } });
    for (const version of [
      "v1",
      "apps/v1",
      "batch/v1",
      "autoscaling/v2",
      "policy/v1",
      "networking.k8s.io/v1",
      "rbac.authorization.k8s.io/v1",
      "apiextensions.k8s.io/v1",
    ]) {
      const base = version === "v1" ? "/api/v1" : `/apis/${version}`;
      for (const { name, kind, namespaced } of (await admin.get(base)).resources) {
        if (name.includes("/")) continue;
        paths.set(`${version} ${kind}`, (ns) => (namespaced ? `${base}/namespaces/${ns}/${name}` : `${base}/${name}`));
      }
    }
  });
  afterAll(async () => {
    await admin?.close();
    await target?.close();
  });

  const strictly = { dryRun: "All", fieldValidation: "Strict" };
  const make = (object: Body) => {
    const path = paths.get(`${object.apiVersion} ${object.kind}`)?.(object.metadata.namespace ?? namespace);
    return path === undefined ? undefined : admin.reply("POST", path, { body: object, query: strictly });
  };
  const podOf = (objects: readonly Body[]) => {
    const { metadata, spec } = workload(objects).spec.template;
    const claims = [{ name: "data", persistentVolumeClaim: { claimName: "data-watchfire-0" } }, ...spec.volumes];
    const volumes = [...new Map(claims.toReversed().map((volume) => [volume.name, volume])).values()];
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, name: "watchfire-0", namespace },
      spec: { ...spec, volumes },
    };
  };

  describe.each(scenarios)("with the values of ci/%s-values.yaml", (scenario) => {
    test("takes every object, each field known", async () => {
      const unknown: string[] = [];
      for (const object of await render(...valuesOf(scenario))) {
        const reply = await make(object);
        // The account exists already, because the pods need it.
        if (reply) expect([201, 409], `${object.kind}: ${reply.text}`).toContain(reply.status);
        else unknown.push(object.kind);
      }
      // The Prometheus operator's kind, in the scenario that enables it.
      expect(unknown).toEqual(scenario === "surroundings" ? ["ServiceMonitor"] : []);
    });

    test("admits the pod to a namespace that enforces the restricted standard", async () => {
      const reply = await make(podOf(await render(...valuesOf(scenario))) as unknown as Body);
      expect(reply?.text).toContain('"uid"');
      expect(reply?.status).toBe(201);
    });
  });

  test("would refuse the pod for one field that the standard forbids", async () => {
    const reply = await make(
      podOf(await render("--set", "securityContext.allowPrivilegeEscalation=true")) as unknown as Body,
    );
    expect(reply?.status).toBe(403);
    expect(reply?.text).toContain("violates PodSecurity");
  });

  test("takes every object of a release whose names YAML takes for something else", async () => {
    await admin.post("/api/v1/namespaces", { metadata: { name: "1234" } });
    const sets = "fullnameOverride=null-1,serviceAccount.name=1e3,replicas=2,networkPolicy.enabled=true";
    for (const object of await renderAs("true", "--namespace", "1234", "--set", sets)) {
      const reply = await make(object);
      expect(reply?.status, `${object.kind}: ${reply?.text}`).toBe(201);
    }
  });

  test("lets a release of one replica become one of two", async () => {
    const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    await admin.post(path, only(await render(), "StatefulSet"));
    const two = only(await render("--set", "replicas=2,functionStatus.enabled=true"), "StatefulSet");
    const applied = await admin.reply("PATCH", `${path}/watchfire`, {
      type: "application/apply-patch+yaml",
      query: { fieldManager: "helm", force: true },
      body: two,
    });
    expect(applied.text).toContain('"replicas":2');
    expect(applied.status).toBe(200);
    const unchangeable = only(await render("--set", "persistence.size=5Gi"), "StatefulSet");
    const refused = await admin.reply("PUT", `${path}/watchfire`, { body: unchangeable });
    expect(refused.status).toBe(422);
  });
});
