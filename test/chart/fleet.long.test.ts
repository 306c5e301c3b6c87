// Replicas that share the functions: the objects that the chart renders for `slots` and `autoscaling`, and the values it refuses.
import { describe, expect, test } from "vitest";
import { noStates } from "../../deploy/dashboard/known-metrics.ts";
import { parse } from "../../runtime/cli/command.ts";
import { start } from "../../runtime/cli/start.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { containers, only, release, render, valuesOf, workload } from "./helm.ts";
import { notes } from "./notes.ts";

const nats = "store.type=nats,nats.url=nats://nats:4222";
const fleet = `${nats},slots=64`;
const set = (...values: readonly string[]) => render("--set", values.join(","));

describe("with slots", () => {
  test("the pods are a Deployment's, without a volume that outlives them, and each is started as a replica of the fleet", async () => {
    const objects = await set(fleet, "replicas=3");
    expect(objects.map(({ kind }) => kind)).not.toContain("StatefulSet");
    const { replicas, template, selector } = only(objects, "Deployment").spec;
    expect(replicas).toBe(3);
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    const { options, given } = parse(start, containers(objects).watchfire.args.slice(1));
    expect(options).toMatchObject({ slots: "64", store: "nats", nats: "nats://nats:4222", identity: "function" });
    expect(given.has("leader-elect")).toBe(false);
    const kinds = template.spec.volumes.flatMap(({ name, ...kind }: { name: string }) => Object.keys(kind));
    expect(new Set(kinds)).toEqual(new Set(["emptyDir", "projected"]));
    const names = template.spec.volumes.map(({ name }: { name: string }) => name);
    const mounts = template.spec.containers.flatMap(
      ({ volumeMounts }: { volumeMounts: { name: string }[] }) => volumeMounts,
    );
    for (const { name } of mounts) expect(names).toContain(name);
  });

  test("other replicas alone reach the port at which the console asks, which only a fleet with a console has", async () => {
    const policy = "networkPolicy.enabled=true";
    const portsOf = (objects: Awaited<ReturnType<typeof set>>) => containers(objects).watchfire.ports;
    const objects = await set(fleet, policy, "console.enabled=true");
    expect(portsOf(objects)).toContainEqual({ name: "replicas", containerPort: 9465 });
    const { ingress, egress, podSelector } = only(objects, "NetworkPolicy").spec;
    const ports = [{ port: "replicas", protocol: "TCP" }];
    expect(ingress).toContainEqual({ ports, from: [{ podSelector }] });
    expect(egress).toContainEqual({ ports, to: [{ podSelector }] });
    for (const others of [await set(fleet, policy), await set(policy, "console.enabled=true")]) {
      expect(JSON.stringify(only(others, "NetworkPolicy"))).not.toContain("replicas");
      expect(JSON.stringify(portsOf(others))).not.toContain("replicas");
    }
  });

  test("a pod is in all else the pod of a release without them", async () => {
    const plain = (args: readonly string[]) => args.filter((arg) => !/^--(slots=|leader-elect$)/.test(arg));
    const podOf = async (...values: string[]) => {
      const { metadata, spec } = workload(await set(nats, "identity=runtime", "persistence.enabled=false", ...values))
        .spec.template;
      const [first, ...others] = spec.containers;
      return { metadata, spec: { ...spec, containers: [{ ...first, args: plain(first.args) }, ...others] } };
    };
    expect(await podOf("slots=64")).toEqual(await podOf());
  });

  test("a rollout takes no replica away before its successor is ready, and gives it longer than its handlers may take", async () => {
    const { strategy, template } = workload(await set(fleet, "replicas=2")).spec;
    expect(strategy).toEqual({ type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } });
    // Handlers have 25 s, and interrupted ones one second more.
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(30);
    await expect(set(fleet, "terminationGracePeriodSeconds=20")).rejects.toThrow("terminationGracePeriodSeconds");
  });

  test("one pod at a time may be evicted, and pods are spread over nodes as the values say", async () => {
    const objects = await set(fleet, "replicas=4");
    const { matchLabels } = workload(objects).spec.selector;
    expect(only(objects, "PodDisruptionBudget").spec).toMatchObject({ maxUnavailable: 1, selector: { matchLabels } });
    const spread = ({ spec }: { spec: { template: { spec: { topologySpreadConstraints: object[] } } } }) =>
      spec.template.spec.topologySpreadConstraints;
    expect(spread(workload(objects) as never)).toMatchObject([
      { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels } },
    ]);
    const zone = "topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule";
    const others = "topologySpreadConstraints[0].labelSelector.matchLabels.app=others";
    const zones = await set(fleet, `${zone},topologySpreadConstraints[0].topologyKey=topology.kubernetes.io/zone`);
    // Without a selector, Kubernetes counts no pods and therefore does not spread them.
    expect(spread(workload(zones) as never)).toMatchObject([
      { topologyKey: "topology.kubernetes.io/zone", labelSelector: { matchLabels } },
    ]);
    const own = await set(fleet, `${zone},topologySpreadConstraints[0].topologyKey=zone,${others}`);
    expect(spread(workload(own) as never)).toMatchObject([{ labelSelector: { matchLabels: { app: "others" } } }]);
  });

  test("the notes name what there is: the Deployment, the command that shows slots, and all Leases", async () => {
    const said = await notes("--set", `${fleet},replicas=3`);
    expect(said).toContain(`rollout status deployment/${release}`);
    expect(said).toContain("watchfire slots");
    expect(said).toContain(`delete lease -l watchfire.dev/fleet=${release}`);
    expect(said).not.toMatch(/statefulset|watchfire-0|persistentvolumeclaim|--leader-elect/);
  });
});

describe("an autoscaler", () => {
  test("is there when it is asked for, and then says alone how many replicas there are", async () => {
    expect((await set(fleet)).map(({ kind }) => kind)).not.toContain("HorizontalPodAutoscaler");
    const objects = await set(fleet, "autoscaling.enabled=true");
    const { scaleTargetRef, minReplicas, maxReplicas } = only(objects, "HorizontalPodAutoscaler").spec;
    const { kind, metadata, spec } = workload(objects);
    expect(scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind, name: metadata.name });
    expect([minReplicas, maxReplicas, spec.replicas]).toEqual([2, 8, undefined]);
    // Unchanged, and ignored from now on.
    expect(workload(await set(fleet, "autoscaling.enabled=true,replicas=65")).spec.replicas).toBeUndefined();
  });

  test("goes by CPU, by the age of the oldest event, or by both, under a name that `/metrics` has", async () => {
    const by = async (...values: string[]) => {
      const { metrics } = only(await set(fleet, "autoscaling.enabled=true", ...values), "HorizontalPodAutoscaler").spec;
      return metrics.map((metric: Record<string, unknown>) => metric.type);
    };
    expect(await by()).toEqual(["Resource"]);
    expect(await by("autoscaling.cpuMillicores=0", "autoscaling.oldestEventSeconds=30")).toEqual(["Pods"]);
    const { metrics } = only(await render(...valuesOf("fleet")), "HorizontalPodAutoscaler").spec;
    expect(metrics.map(({ type }: { type: string }) => type)).toEqual(["Resource", "Pods"]);
    expect(await new Metrics().text(noStates)).toContain(`\n${metrics[1].pods.metric.name} 0\n`);
    expect(metrics[1].pods.target).toEqual({ type: "AverageValue", averageValue: "30" });
  });
});
