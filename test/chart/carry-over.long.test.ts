// `helm upgrade` between one replica with a volume and replicas that share the functions. Helm reads from the runtime's Lease
// where the checkpoints are, and renders the objects that migrate them.
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Body, Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { type OwnTarget, startTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { chart, helm, namespace, only, release, render } from "./helm.ts";

const nats = "store.type=nats,nats.url=nats://nats:4222";
const fleet = `${nats},slots=64,replicas=3`;
const alone = "store.type=auto,slots=0,replicas=1";

const kinds = ["embedded", ...(assetsFolder() === undefined ? [] : ["real" as const])] as const;

describe.each(kinds)("a release through its life, on the %s API server", (kind) => {
  let target: OwnTarget;
  let admin: Client;
  let where: readonly string[];

  beforeAll(async () => {
    target = await startTarget(kind);
    admin = new Client(target.access);
    const kubeconfig = join(await mkdtemp(join(tmpdir(), "watchfire-helm-")), "kubeconfig");
    await writeFile(kubeconfig, kubeconfigOf(target.access));
    where = ["--kubeconfig", kubeconfig];
  });
  afterAll(async () => {
    await admin?.close();
    await target?.close();
  });
  const upgrade = (...sets: readonly string[]) =>
    helm(
      "upgrade",
      "--install",
      release,
      chart,
      ...where,
      ...["--namespace", namespace, "--create-namespace", "--reuse-values"],
      ...sets.flatMap((set) => (set.startsWith("--") ? set : ["--set", set])),
    );

  /** Writes the annotation of the Lease that the runtime sets once its checkpoints are there. */
  async function positionsAre(place: string): Promise<void> {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const metadata = { name: release, annotations: { "watchfire.dev/positions": place } };
    await admin.reply("POST", path, { body: { metadata, spec: {} } });
    await admin.reply("PATCH", `${path}/${release}`, { type: "application/merge-patch+json", body: { metadata } });
  }

  const find = (plural: string): Promise<Body | undefined> =>
    admin
      .reply("GET", `/apis/apps/v1/namespaces/${namespace}/${plural}/${release}`)
      .then(({ status, text }) => (status === 200 ? (JSON.parse(text) as Body) : undefined));
  /** Scales the Deployment as `kubectl scale` and an autoscaler do. */
  async function scale(replicas: number): Promise<void> {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${release}/scale`;
    await admin.patch(path, { spec: { replicas } }, "merge", { fieldManager: "somebody" });
  }
  const strategy = async () => (await find("deployments"))?.spec.strategy;
  const mayList = async () => {
    const role = await admin.get(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles/${release}`);
    return role.rules.some(({ resources, verbs }: { resources: string[]; verbs: string[] }) => {
      return resources.includes("leases") && verbs.includes("list");
    });
  };
  const argsOf = (workload: Body | undefined): string[] => workload?.spec.template.spec.containers[0].args ?? [];

  test("the pod with the volume stays as a replica while positions are there, in the StatefulSet that there was", async () => {
    await upgrade();
    const before = await find("statefulsets");
    await positionsAre("sqlite/watchfire-0");
    expect(await upgrade(fleet)).toContain("volume of watchfire-0");
    const stays = await find("statefulsets");
    expect(stays?.metadata.uid).toBe(before?.metadata.uid);
    expect(stays?.spec.replicas).toBe(1);
    expect(stays?.spec.volumeClaimTemplates).toEqual(before?.spec.volumeClaimTemplates);
    const volumes = stays?.spec.template.spec.volumes.map(({ name }: { name: string }) => name);
    expect(volumes).not.toContain("data");
    const deployment = await find("deployments");
    expect(deployment?.spec.replicas).toBe(3);
    expect(argsOf(stays)).toEqual(argsOf(deployment));
    expect(argsOf(stays)).toEqual(expect.arrayContaining(["--slots=64", "--store=nats", "--data=/data"]));
  });

  test("with another number of slots all pods end first; the volume's pod is gone since positions are carried over", async () => {
    await positionsAre("fleet/64");
    await upgrade("slots=128");
    expect(await find("statefulsets")).toBeUndefined();
    expect(await strategy()).toEqual({ type: "Recreate" });
  });

  test("once that is done, pods are replaced one by one again", async () => {
    await positionsAre("fleet/128");
    await upgrade();
    expect(await strategy()).toEqual({ type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
  });

  test("how many pods there are is the autoscaler's from its first upgrade on, and nobody else's meanwhile", async () => {
    const replicas = async () => (await find("deployments"))?.spec.replicas;
    expect(await replicas()).toBe(3);
    await upgrade("autoscaling.enabled=true");
    expect(await replicas()).toBe(3);
    await scale(5);
    await upgrade("logLevel=debug");
    expect(await replicas()).toBe(5);
  });

  test("a number that another set is refused by Helm, unless it is given too, or taken back by force", async () => {
    await expect(upgrade("autoscaling.enabled=false")).rejects.toThrow(".spec.replicas");
    await upgrade("autoscaling.enabled=false,replicas=5");
    await expect(upgrade("replicas=3")).rejects.toThrow(".spec.replicas");
    await upgrade("replicas=3", "--force-conflicts");
    expect((await find("deployments"))?.spec.replicas).toBe(3);
  });

  test("the way back is a StatefulSet that reaches NATS, with the rights to the Leases of those that end", async () => {
    expect(await upgrade(alone)).toContain("Keep nats.url");
    expect(await find("deployments")).toBeUndefined();
    expect(argsOf(await find("statefulsets"))).toEqual(
      expect.arrayContaining(["--store=sqlite", "--nats=nats://nats:4222", "--leader-elect"]),
    );
    expect(await mayList()).toBe(true);
  });

  test("a pod that may still share with the fleet comes back alone: a second one would be brought first, and wait for it", async () => {
    const said = await upgrade("replicas=2");
    expect((await find("statefulsets"))?.spec.replicas).toBe(1);
    expect(said).toContain("The next upgrade adds the standbys");
  });

  test("once positions are back, standbys come and the rights go", async () => {
    await positionsAre("kubernetes");
    await upgrade("nats.url=");
    expect((await find("statefulsets"))?.spec.replicas).toBe(2);
    expect(await mayList()).toBe(false);
  });
});

describe("where Helm sees no cluster, `store.from` says where positions are", () => {
  const set = (...values: readonly string[]) => render("--set", values.join(","));
  const rightsTo = (objects: readonly Body[], resource: string) =>
    only(objects, "Role").rules.filter(({ resources }: { resources: string[] }) => resources.includes(resource));

  test("on a volume, whose pod is one more replica", async () => {
    expect((await set(fleet)).map(({ kind }) => kind)).not.toContain("StatefulSet");
    expect(only(await set(fleet, "store.from=sqlite"), "StatefulSet").spec.replicas).toBe(1);
    await expect(set(fleet, "store.from=sqlite,persistence.enabled=false")).rejects.toThrow(
      "persistence.enabled is false, and checkpoints are on a volume",
    );
  });

  test("in Secrets, which the runtime may read", async () => {
    expect(rightsTo(await set(fleet), "secrets")).toEqual([]);
    expect(rightsTo(await set(fleet, "store.from=kubernetes"), "secrets")).toMatchObject([
      { verbs: ["get", "update"] },
    ]);
  });

  test("in slots, whose Leases the runtime may read, and which are left before others are taken", async () => {
    const list = (objects: readonly Body[]) =>
      rightsTo(objects, "leases").flatMap(({ verbs }: { verbs: string[] }) => verbs);
    expect(list(await set(nats))).not.toContain("list");
    expect(list(await set(nats, "store.from=fleet"))).toContain("list");
    expect(only(await set(fleet, "store.from=fleet"), "Deployment").spec.strategy.type).toBe("Recreate");
    await expect(set("store.from=fleet")).rejects.toThrow("nats.url is empty, and checkpoints are on NATS (fleet)");
  });
});
