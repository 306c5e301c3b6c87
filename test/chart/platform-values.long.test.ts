import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { blocks } from "../readme/blocks.ts";
import { containers, only, render, scenarios, valuesOf, workload } from "./helm.ts";

/** Renders the chart with these values, and so many of helm's own options. */
async function rendered(values: object, ...args: readonly string[]) {
  const file = join(await mkdtemp(join(tmpdir(), "watchfire-values-")), "values.yaml");
  await writeFile(file, stringify(values));
  return await render("--values", file, ...args);
}
const podOf = (objects: Awaited<ReturnType<typeof render>>) => workload(objects).spec.template;

test.each(scenarios)(
  "an annotation of every object is on every object and on the pod, with the values of %s",
  async (name) => {
    const objects = await render(...valuesOf(name), "--set-string", "commonAnnotations.team=platform");
    const own = objects.filter(({ metadata }) => metadata.labels?.["app.kubernetes.io/name"] !== undefined);
    for (const { metadata } of [...own, podOf(objects)])
      expect(metadata.annotations).toMatchObject({ team: "platform" });
    expect(own.length).toBeGreaterThan(3);
  },
);

test("the file of values on the page about platforms renders", async () => {
  const [example] = blocks.filter(({ page, language }) => page.endsWith("platforms.md") && language === "yaml");
  const objects = await rendered(parse(example?.text ?? ""));
  expect(containers(objects).watchfire.image).toMatch(/^mirror[.]example[.]com[/]/);
  expect(podOf(objects).spec.runtimeClassName).toBe("gvisor");
});

test("an annotation of the chart or of the pod takes precedence over one of every object", async () => {
  const objects = await rendered({
    commonAnnotations: { "helm.sh/resource-policy": "delete", team: "all" },
    podAnnotations: { team: "pod" },
    replicas: 2,
  });
  const secrets = objects.filter(({ kind }) => kind === "Secret");
  expect(secrets).toHaveLength(8);
  for (const { metadata } of secrets) expect(metadata.annotations?.["helm.sh/resource-policy"]).toBe("keep");
  expect(podOf(objects).metadata.annotations.team).toBe("pod");
});

test.each([["replicas=2"], ["store.from=kubernetes"]])(
  "no prune deletes the Secrets with checkpoints: %s",
  async (set) => {
    const secrets = (await render("--set", set)).filter(({ kind }) => kind === "Secret");
    expect(secrets).toHaveLength(8);
    for (const { metadata } of secrets) {
      expect(metadata.annotations).toMatchObject({
        "argocd.argoproj.io/sync-options": "Prune=false",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
      });
    }
  },
);

test("no cloud's identity reaches the executor by its webhook", async () => {
  expect(podOf(await render()).metadata.annotations).toMatchObject({
    "eks.amazonaws.com/skip-containers": "executor",
    "azure.workload.identity/skip-containers": "executor",
  });
});

test("a parent chart's registry replaces the image's, in both containers", async () => {
  const imagesWith = async (...sets: string[]) => {
    const { watchfire, executor } = containers(await render(...sets.flatMap((set) => ["--set", set])));
    expect(executor.image).toBe(watchfire.image);
    return String(watchfire.image).replace(/:[^:/]*$/, "");
  };
  expect(await imagesWith()).toBe("ghcr.io/watchfire/watchfire");
  expect(await imagesWith("global.imageRegistry=mirror.example:5000")).toBe("mirror.example:5000/watchfire/watchfire");
  expect(await imagesWith("global.imageRegistry=mirror.example", "image.repository=team/fire")).toBe(
    "mirror.example/team/fire",
  );
});

test("a probe's fields can be replaced one by one, and not how it asks", async () => {
  const { watchfire } = containers(await rendered({ probes: { liveness: { timeoutSeconds: 20 } } }));
  expect(watchfire.livenessProbe).toEqual({
    httpGet: { path: "/livez", port: "http" },
    periodSeconds: 10,
    timeoutSeconds: 20,
    failureThreshold: 3,
  });
  await expect(rendered({ probes: { readiness: { exec: { command: ["true"] } } } })).rejects.toThrow("exec");
});

test("the pod's class, names and update strategy are the user's", async () => {
  const values = {
    runtimeClassName: "gvisor",
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["10.0.0.10"], options: [{ name: "ndots", value: "1" }] },
    hostAliases: [{ ip: "10.1.2.3", hostnames: ["nats.example"] }],
    updateStrategy: { type: "OnDelete" },
  };
  const objects = await rendered(values);
  const { updateStrategy, ...ofPod } = values;
  expect(podOf(objects).spec).toMatchObject(ofPod);
  expect(only(objects, "StatefulSet").spec.updateStrategy).toEqual(updateStrategy);
  const fleet = { slots: 8, store: { type: "nats" }, nats: { url: "nats://nats:4222" } };
  await expect(rendered({ ...fleet, updateStrategy })).rejects.toThrow("updateStrategy is for a StatefulSet");
});

test("an option may be added to the runtime, unless the chart sets it", async () => {
  const { watchfire, executor } = containers(await rendered({ extraArgs: ["--reserve=team-secret"] }));
  expect(watchfire.args.at(-1)).toBe("--reserve=team-secret");
  expect(executor.args).not.toContain("--reserve=team-secret");
  await expect(rendered({ extraArgs: ["--data=/elsewhere"] })).rejects.toThrow("--data is the chart's own option");
});

test("without a cluster-wide right the chart creates only Roles in its namespace", async () => {
  const kinds = (objects: Awaited<ReturnType<typeof render>>) => objects.map(({ kind }) => kind);
  expect(kinds(await render())).toContain("ClusterRole");
  const objects = await rendered({ rbac: { scope: "namespaces" } });
  expect(kinds(objects).filter((kind) => kind.startsWith("Cluster"))).toEqual([]);
  // Reviews of tokens would need one.
  expect(containers(objects).watchfire.args).not.toContain("--token-review");
  expect(only(objects, "Role").metadata.namespace).toBe("apps");
});

test("a DNS server may have another port", async () => {
  const objects = await rendered({ networkPolicy: { enabled: true, dnsPorts: [53, 5353] } });
  const [, dns] = only(objects, "NetworkPolicy").spec.egress;
  expect(dns.ports).toEqual([53, 5353].flatMap((port) => ["UDP", "TCP"].map((protocol) => ({ port, protocol }))));
});

test.each([
  ["functions.source is oci", { functions: { source: "oci", oci: { reference: "r.example/f:1" } } }],
  ["userNamespace needs", { userNamespace: true }],
])("what the cluster's Kubernetes would drop is refused: %s", async (message, values) => {
  await expect(rendered(values, "--kube-version", "1.32.4")).rejects.toThrow(message);
  await rendered(values, "--kube-version", "1.33.0-eks-1");
});

test("OpenShift's restricted-v2 and a cluster with fixed requests find no user, group or missing request", async () => {
  const objects = await render("--api-versions", "security.openshift.io/v1");
  const pod = podOf(objects).spec;
  expect(Object.keys(pod.securityContext).sort()).toEqual(["runAsNonRoot", "seccompProfile"]);
  for (const { securityContext, resources } of pod.containers) {
    expect(securityContext).not.toHaveProperty("runAsUser");
    expect(securityContext.capabilities).toEqual({ drop: ["ALL"] });
    expect(resources.requests).toMatchObject({ cpu: expect.any(String), memory: expect.any(String) });
  }
});

test("an air-gapped cluster pulls nothing but the images that the values name", async () => {
  const objects = await render("--set", "global.imageRegistry=mirror.local");
  const images = objects.flatMap(({ spec }) => {
    const pod = spec?.template?.spec ?? (spec?.containers ? spec : undefined);
    return [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])].map(({ image }: { image: string }) => image);
  });
  expect(images.length).toBeGreaterThan(1);
  for (const image of images) expect(image).toMatch(/^mirror[.]local[/]watchfire[/]watchfire:/);
});
