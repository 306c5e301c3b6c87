import { readFileSync } from "node:fs";
import { cp, mkdtemp, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readValues, type Value } from "../../deploy/values/values.ts";
import { logLevels } from "../../runtime/base/config.ts";
import { chart, containers, helm, only, render, scenarios, valuesOf, workload } from "./helm.ts";

const { appVersion } = parse(readFileSync(join(chart, "Chart.yaml"), "utf8"));

describe.each(scenarios)("with the values of ci/%s-values.yaml", (scenario) => {
  test("helm lints and renders the chart", async () => {
    expect(await helm("lint", "--strict", chart, ...valuesOf(scenario))).toContain("0 chart(s) failed");
    expect(workload(await render(...valuesOf(scenario))).spec.template.spec.containers).toHaveLength(2);
  });

  test("the executor has a memory limit and neither token nor variables nor any volume but the socket", async () => {
    const objects = await render(...valuesOf(scenario));
    const { watchfire, executor } = containers(objects);
    const pod = workload(objects).spec.template.spec;
    expect(pod.automountServiceAccountToken).toBe(false);
    // Process 1 of the executor's container is the supervisor: its children end with it, and cannot end it.
    expect([pod.shareProcessNamespace, pod.hostPID, executor.command]).toEqual([false, false, undefined]);
    expect(executor).toMatchObject({
      args: ["executor", expect.any(String)],
      resources: { limits: { memory: "1Gi" } },
    });
    expect(executor.volumeMounts).toEqual([{ name: "socket", mountPath: "/run/watchfire", readOnly: true }]);
    expect([executor.env, executor.envFrom, executor.command, watchfire.command]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(watchfire.args[0]).toBe("start");
    expect(watchfire.volumeMounts.map(({ name }: { name: string }) => name)).toContain("account");
  });

  test("no variable is named twice", async () => {
    const names = containers(await render(...valuesOf(scenario))).watchfire.env.map(
      ({ name }: { name: string }) => name,
    );
    expect(names).toEqual([...new Set(names)]);
  });

  test("liveness does not wait for readiness, and each is asked for by HTTP", async () => {
    const { watchfire } = containers(await render(...valuesOf(scenario)));
    expect(watchfire.startupProbe.httpGet.path).toBe("/livez");
    expect(watchfire.livenessProbe.httpGet.path).toBe("/livez");
    expect(watchfire.readinessProbe.httpGet.path).toBe("/readyz");
  });
});

test("helm packages the chart", async () => {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-package-"));
  await helm("package", chart, "--destination", folder);
  expect(await readdir(folder)).toEqual([expect.stringMatching(/^watchfire-\d.*\.tgz$/)]);
});

describe("values", () => {
  test("a parent chart's `global` and `enabled` are admitted", async () => {
    await expect(render("--set", "global.any.thing=1,enabled=false")).resolves.not.toHaveLength(0);
  });

  test("a parent chart may set a few values, and take some away", async () => {
    const parent = await mkdtemp(join(tmpdir(), "watchfire-parent-"));
    await cp(chart, join(parent, "charts/watchfire"), { recursive: true });
    const meta = { apiVersion: "v2", name: "parent", version: "0.1.0", dependencies: [{ name: "watchfire" }] };
    await writeFile(join(parent, "Chart.yaml"), JSON.stringify(meta));
    const values = {
      image: { tag: 3 },
      commonLabels: null,
      extraEnv: null,
      podSecurityContext: { fsGroup: null },
      resources: { requests: null, limits: { memory: null } },
      executor: { resources: { requests: { memory: null } } },
    };
    await writeFile(join(parent, "values.yaml"), JSON.stringify({ watchfire: values }));
    expect(await helm("template", "parent", parent)).toContain(`image: "ghcr.io/watchfire/watchfire:3"`);
    await expect(helm("template", "parent", parent, "--set", "watchfire.image=null")).rejects.toThrow("'image'");
  });

  const groups = (values: readonly Value[], path: string): string[] =>
    values.flatMap(({ name, children }) =>
      children ? [`${path}${name}.`, ...groups(children, `${path}${name}.`)] : [],
    );

  test.each(["", ...groups(readValues(), "")])("a misspelt name below `%s` is refused", async (group) => {
    await expect(render("--set", `${group}misspelt=1`)).rejects.toThrow("'misspelt' not allowed");
  });

  test("each value has the type that its default has, at least", async () => {
    await expect(render("--set-string", "replicas=two")).rejects.toThrow("got string, want integer");
    await expect(render("--set", "persistence.enabled=maybe")).rejects.toThrow("got string, want boolean");
  });

  test.each([
    ["functions.source=oci", "functions.oci.reference"],
    ["replicas=2,store.type=sqlite", "store"],
    ["serviceAccount.create=false", "serviceAccount.name"],
    ["executor.resources.limits.memory=null", "executor.resources.limits.memory"],
    ["executor.resources=null", "executor.resources.limits.memory"],
    ["executor.resources.limits.memory=0", "executor.resources.limits.memory"],
    ["executor.seccompProfile.type=Localhost", "localhostProfile"],
    ["executor.seccompProfile.localhostProfile=unix-only.json", "localhostProfile"],
    ["executor.seccompProfile.type=Unconfined", "'RuntimeDefault', 'Localhost'"],
    ["extraObjects={some text}", "extraObjects[0]"],
    ["persistence.size=big", "/persistence/size"],
    ["persistence.emptyDirSizeLimit=-1Gi", "/persistence/emptyDirSizeLimit"],
    ["resources.requests.cpu=much", "/resources/requests/cpu"],
    ["networkPolicy.apiServer.cidrs={10.0.0.256/32}", "/networkPolicy/apiServer/cidrs/0"],
    ["networkPolicy.extraEgress[0].to[0].ipBlock.cidr=fd00::1", "/networkPolicy/extraEgress/0/to/0/ipBlock/cidr"],
    ["image.tag=a/b", "/image/tag"],
    ["serviceMonitor.interval=often", "/serviceMonitor/interval"],
  ])("%s alone is refused with a hint", async (set, hint) => {
    await expect(render("--set", set)).rejects.toThrow(hint);
  });

  test.each([
    ["podSecurityContext.fsgroup=1", "/podSecurityContext': additional properties 'fsgroup'"],
    ["podSecurityContext.seccompProfile.kind=x", "/podSecurityContext/seccompProfile': additional properties 'kind'"],
    [
      "securityContext.readOnlyRootFileSystem=true",
      "/securityContext': additional properties 'readOnlyRootFileSystem'",
    ],
    ["securityContext.capabilities.dropped={ALL}", "/securityContext/capabilities': additional properties 'dropped'"],
    ["executor.seccompProfile.profile=x", "/executor/seccompProfile': additional properties 'profile'"],
    ["executor.resources.limit.memory=1Gi", "/executor/resources': additional properties 'limit'"],
    ["tolerations[0].keys=x", "/tolerations/0': additional properties 'keys'"],
  ])("%s is refused, since Kubernetes has no such field", async (set, hint) => {
    await expect(render("--set", set)).rejects.toThrow(hint);
  });

  test.each([
    ["--set", "image.tag=1", "1"],
    ["--set", "image.tag=0", "0"],
    ["--set", "image.tag=20261121102030", "20261121102030"],
    ["--set", "image.tag=1e10", "1e10"],
    ["--set", "image.tag=1.10", "1.10"],
    ["--set-json", "image.tag=20261121102030", "20261121102030"],
    ["--set", "image.tag=", appVersion],
    ["--set", "image.tag=null", appVersion],
  ])("%s %s is the image's tag %s", async (flag, set, tag) => {
    expect(containers(await render(flag, set))).toMatchObject({
      watchfire: { image: `ghcr.io/watchfire/watchfire:${tag}` },
      executor: { image: `ghcr.io/watchfire/watchfire:${tag}` },
    });
  });

  test("a number that a file cannot hold exactly is refused as the image's tag", async () => {
    await expect(render("--set-json", "image.tag=99999999999999999999")).rejects.toThrow("/image/tag");
    await expect(render("--set-json", "image.tag=1.5")).rejects.toThrow("/image/tag");
  });

  test("a volume's size may be a number, and is written as one writes it", async () => {
    const [claim] = only(await render(...valuesOf("terse")), "StatefulSet").spec.volumeClaimTemplates;
    expect(claim.spec.resources.requests.storage).toBe("21474836480");
  });

  test("executors compile no machine code if they are told so", async () => {
    const args = async (...sets: string[]) => containers(await render(...sets)).watchfire.args;
    expect(await args()).not.toContain("--jitless");
    expect(await args("--set", "executor.jitless=true")).toContain("--jitless");
  });

  test("the executor keeps its seccomp profile, whatever the others have", async () => {
    const profile = async (...sets: string[]) =>
      containers(await render(...sets.flatMap((set) => ["--set", set]))).executor.securityContext.seccompProfile;
    const others =
      "securityContext.seccompProfile.type=Localhost,securityContext.seccompProfile.localhostProfile=a.json";
    expect(await profile()).toEqual({ type: "RuntimeDefault" });
    expect(await profile(others)).toEqual({ type: "RuntimeDefault" });
    expect(await profile("securityContext=null,podSecurityContext=null")).toEqual({ type: "RuntimeDefault" });
    expect(
      await profile(others, "executor.seccompProfile.type=Localhost,executor.seccompProfile.localhostProfile=b.json"),
    ).toEqual({ type: "Localhost", localhostProfile: "b.json" });
  });

  test("no label of the user's takes the place of one that the chart selects by", async () => {
    const label = ["app", "kubernetes", "io/name=mine"].join("\\.");
    const sets = ["commonLabels", "podLabels"].flatMap((group) => ["--set", `${group}.${label}`]);
    const { selector, template } = only(await render(...sets), "StatefulSet").spec;
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
  });

  test("labels of one kind of object go before those of every object", async () => {
    const sets = "commonLabels.tier=all,podLabels.tier=pods,serviceMonitor.labels.tier=monitors";
    const objects = await render("--set", `${sets},serviceMonitor.enabled=true,serviceMonitor.renderMode=alwaysRender`);
    expect(only(objects, "StatefulSet").spec.template.metadata.labels.tier).toBe("pods");
    expect(only(objects, "ServiceMonitor").metadata.labels?.tier).toBe("monitors");
    expect(only(objects, "Service").metadata.labels?.tier).toBe("all");
  });

  test("a variable of the user's takes the place of the chart's", async () => {
    const { watchfire } = containers(await render(...valuesOf("surroundings")));
    expect(watchfire.env).toContainEqual({ name: "WATCHFIRE_LOG_LEVEL", value: "warn" });
  });
});

describe("what may be missing in the cluster", () => {
  const kinds = async (...args: string[]) => (await render(...args)).map(({ kind }) => kind);
  const monitor = (mode: string) => ["--set", `serviceMonitor.enabled=true,serviceMonitor.renderMode=${mode}`];
  const served = ["--api-versions", "monitoring.coreos.com/v1/ServiceMonitor"];

  test("a ServiceMonitor is left out, refused or rendered all the same, as the values say", async () => {
    expect(await kinds(...monitor("skipIfMissing"))).not.toContain("ServiceMonitor");
    await expect(kinds(...monitor("failIfMissing"))).rejects.toThrow("Prometheus operator");
    expect(await kinds(...monitor("alwaysRender"))).toContain("ServiceMonitor");
    expect(await kinds(...monitor("failIfMissing"), ...served)).toContain("ServiceMonitor");
  });

  test.each([
    ["podMonitor", "PodMonitor"],
    ["prometheusRule", "PrometheusRule"],
  ])("%s: a %s is left out, refused or rendered all the same, as the values say", async (value, kind) => {
    const made = (mode: string) => ["--set", `${value}.enabled=true,${value}.renderMode=${mode}`];
    expect(await kinds(...made("skipIfMissing"))).not.toContain(kind);
    await expect(kinds(...made("failIfMissing"))).rejects.toThrow("Prometheus operator");
    expect(await kinds(...made("alwaysRender"))).toContain(kind);
    const api = ["--api-versions", `monitoring.coreos.com/v1/${kind}`];
    expect(await kinds(...made("failIfMissing"), ...api)).toContain(kind);
  });

  test("a PodMonitor and a ServiceMonitor at once are refused", async () => {
    const both = "podMonitor.enabled=true,serviceMonitor.enabled=true";
    await expect(kinds("--set", both)).rejects.toThrow("each pod would be scraped twice");
  });

  test("the console is off unless the values enable it", async () => {
    const args = async (...sets: string[]) => containers(await render(...sets)).watchfire.args;
    expect(await args()).not.toContain("--console");
    expect(await args("--set", "console.enabled=true")).toContain("--console");
  });

  test("on OpenShift no group is asked for", async () => {
    const group = async (...args: string[]) =>
      only(await render(...args), "StatefulSet").spec.template.spec.securityContext.fsGroup;
    expect(await group()).toBe(65532);
    expect(await group("--api-versions", "security.openshift.io/v1")).toBeUndefined();
  });
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

describe("the alerts of a PrometheusRule", () => {
  const on = "prometheusRule.enabled=true,prometheusRule.renderMode=alwaysRender";
  const rulesOf = async (...args: string[]): Promise<Rule[]> =>
    only(await render("--set", on, ...args), "PrometheusRule").spec.groups[0].rules;

  test("select the series of this release alone, each with a severity, a summary and the runbook", async () => {
    const rules = await rulesOf();
    expect(rules.length).toBeGreaterThan(10);
    for (const { alert, expr, labels, annotations } of rules) {
      const series = [...expr.matchAll(/watchfire_\w+(\{[^}]*\})?/g)].map(([, selector = ""]) => selector);
      for (const selector of series) expect(selector, alert).toContain('job="watchfire",namespace="apps"');
      expect(["critical", "warning", "info"], alert).toContain(labels.severity);
      expect(annotations.summary.length, alert).toBeGreaterThan(10);
      expect(annotations.runbook_url, alert).toMatch(/^https:.*runbook\.md#alerts$/);
    }
  });

  test("can be left out by name, labelled for Alertmanager, and joined by others", async () => {
    const rules = await rulesOf(
      ...["--set", "prometheusRule.disabled={WatchfireLagging},prometheusRule.alertLabels.team=platform"],
      ...["--set-json", 'prometheusRule.additionalRules=[{"alert":"Own","expr":"vector(1)"}]'],
    );
    expect(rules.map(({ alert }) => alert)).not.toContain("WatchfireLagging");
    expect(rules.map(({ alert }) => alert)).toContain("Own");
    expect(rules[0]?.labels).toEqual({ severity: "critical", team: "platform" });
  });
});

describe("from one replica to two", () => {
  const set = async (...args: string[]) => only(await render(...args), "StatefulSet").spec;

  test("nothing of the StatefulSet changes that cannot be changed", async () => {
    const changeable = { replicas: 0, template: 0, updateStrategy: 0, persistentVolumeClaimRetentionPolicy: 0 };
    const [one, two] = [await set(), await set("--set", "replicas=2")];
    expect(two).toMatchObject({ replicas: 2 });
    expect({ ...two, ...changeable }).toEqual({ ...one, ...changeable });
  });

  test("positions move into Secrets that an uninstall keeps", async () => {
    const kept = async (...args: string[]) =>
      (await render(...args)).filter(
        ({ kind, metadata }) => kind === "Secret" && metadata.annotations?.["helm.sh/resource-policy"] === "keep",
      );
    expect(await kept()).toHaveLength(0);
    expect(await kept("--set", "replicas=2")).toHaveLength(8);
    expect((await kept("--set", "replicas=2")).filter(({ data, stringData }) => data ?? stringData)).toHaveLength(0);
  });
});

describe("on NATS", () => {
  const set = async (...args: string[]) => only(await render(...args), "StatefulSet").spec;
  const nats = "store.type=nats,nats.url=nats://nats.nats:4222";

  test("nothing of the StatefulSet changes that cannot be changed, so that positions go there from the volume and back", async () => {
    const changeable = { replicas: 0, template: 0, updateStrategy: 0, persistentVolumeClaimRetentionPolicy: 0 };
    const [one, two] = [await set(), await set("--set", `replicas=3,${nats}`)];
    expect({ ...two, ...changeable }).toEqual({ ...one, ...changeable });
    const back = containers(await render("--set", "nats.url=nats://nats.nats:4222")).watchfire;
    expect(back.args).toEqual(expect.arrayContaining(["--store=sqlite", "--nats=nats://nats.nats:4222"]));
  });

  test("the runtime alone has the credentials and certificates, and no function may write their Secrets", async () => {
    const objects = await render(...valuesOf("nats"));
    const { watchfire, executor } = containers(objects);
    expect(watchfire.args).toEqual(
      expect.arrayContaining([
        "--store=nats",
        "--nats=tls://nats-0.nats:4222,tls://nats-1.nats:4222",
        "--nats-creds=/etc/watchfire/nats/credentials",
        "--nats-ca=/etc/watchfire/nats/ca.crt",
        "--nats-cert=/etc/watchfire/nats/tls.crt",
        "--nats-key=/etc/watchfire/nats/tls.key",
        "--nats-replicas=3",
        "--reserve=nats-user",
        "--reserve=nats-tls",
      ]),
    );
    const { volumes } = only(objects, "StatefulSet").spec.template.spec;
    const files = volumes.find((volume: { name: string }) => volume.name === "nats").projected.sources;
    expect(
      files.map(({ secret }: { secret: { name: string; items: { path: string }[] } }) => [
        secret.name,
        ...secret.items.map(({ path }) => path),
      ]),
    ).toEqual([
      ["nats-user", "credentials"],
      ["nats-tls", "ca.crt", "tls.crt", "tls.key"],
    ]);
    expect(executor.volumeMounts.map(({ name }: { name: string }) => name)).toEqual(["socket"]);
  });

  test("a NetworkPolicy lets the pod reach the ports that the address names", async () => {
    const { egress } = only(await render(...valuesOf("nats")), "NetworkPolicy").spec;
    const ports = egress.flatMap((rule: { ports: { port: number }[] }) => rule.ports.map(({ port }) => port));
    expect(ports).toContain(4222);
  });

  test("an address that is missing, and one with a password in it, are refused", async () => {
    await expect(render("--set", "store.type=nats")).rejects.toThrow("nats.url must name it");
    await expect(render("--set", "store.type=nats,nats.url=nats://me:secret@nats:4222")).rejects.toThrow("nats/url");
  });
});

describe("what no pod can be made of is refused, with what to do", () => {
  const oci = "functions.source=oci,functions.oci.reference=functions:1";

  test.each([
    ["extraVolumes[0].name=tmp", /extraVolumes: the name tmp is taken/],
    ["extraVolumes[0].name=socket", /extraVolumes: the name socket is taken/],
    ["extraVolumes[0].name=account", /extraVolumes: the name account is taken/],
    ["extraVolumes[0].name=data", /extraVolumes: the name data is taken/],
    [`${oci},extraVolumes[0].name=functions`, /extraVolumes: the name functions is taken/],
    ["extraVolumes[0].name=mine,extraVolumes[1].name=mine", /extraVolumes: the name mine is taken/],
    ["extraContainers[0].name=executor", /extraContainers: the name executor is taken/],
    ["extraInitContainers[0].name=watchfire", /extraInitContainers: the name watchfire is taken/],
    ["extraContainers[0].name=mine,extraInitContainers[0].name=mine", /extraInitContainers: the name mine is taken/],
    [
      "extraVolumeMounts[0].name=tmp,extraVolumeMounts[0].mountPath=/data",
      /extraVolumeMounts: the mountPath \/data is taken/,
    ],
    [
      "extraVolumeMounts[0].name=mine,extraVolumeMounts[0].mountPath=/mine",
      /extraVolumeMounts: there is no volume mine/,
    ],
    ["cacheLimit=1600Mi", /cacheLimit=1600Mi .*resources\.limits\.memory=1536Mi/],
    ["cacheLimit=1G,resources.limits.memory=1e9", /cacheLimit=1G .*resources\.limits\.memory=1e9/],
    ["cacheLimit=255Mi,resources.limits.memory=200Mi", /cacheLimit=255Mi .*resources\.limits\.memory=200Mi/],
    [
      "cacheLimit=32Mi,resources.limits.memory=128Mi",
      /resources\.limits\.memory=128Mi is less than resources\.requests\.memory=192Mi/,
    ],
    ["resources.limits.cpu=0.05", /resources\.limits\.cpu=0\.05 is less than resources\.requests\.cpu=100m/],
    [
      "executor.resources.limits.memory=200M",
      /executor\.resources\.limits\.memory=200M is less than executor\.resources\.requests\.memory=256Mi/,
    ],
    [
      "extraEnv[0].name=WATCHFIRE_LOG_LEVEL,extraEnv[0].value=verbose",
      /WATCHFIRE_LOG_LEVEL.*verbose.*fatal, error, warn, info, debug, trace/,
    ],
  ])("%s", async (values, hint) => {
    await expect(render("--set", values)).rejects.toThrow(hint);
  });

  test.each([
    "extraVolumes[0].name=functions,extraVolumeMounts[0].name=functions,extraVolumeMounts[0].mountPath=/functions",
    "extraVolumeMounts[0].name=data,extraVolumeMounts[0].mountPath=/mine",
    "cacheLimit=767Mi",
    "cacheLimit=900Mi,resources.limits.memory=1G",
    "cacheLimit=900Mi,resources.limits=null",
    "resources.limits.cpu=0.1,executor.resources.limits.memory=268435456",
    "resources.requests=null,resources.limits.memory=0.3Gi",
  ])("and %s is taken", async (values) => {
    await expect(render("--set", values)).resolves.not.toHaveLength(0);
  });

  test("each level that the runtime takes may be in the extra variables", async () => {
    for (const level of logLevels) {
      const values = `extraEnv[0].name=WATCHFIRE_LOG_LEVEL,extraEnv[0].value=${level}`;
      await expect(render("--set", values)).resolves.not.toHaveLength(0);
    }
  });
});

describe("a NetworkPolicy lets the pod ask for names", () => {
  const peers = async (...args: string[]) => {
    const { egress } = only(await render("--set", "networkPolicy.enabled=true", ...args), "NetworkPolicy").spec;
    const rules = egress.filter(({ ports }: { ports: { port: number }[] }) => ports.some(({ port }) => port === 53));
    return rules.flatMap(({ to }: { to: unknown[] }) => to);
  };

  test("of any pod, and of NodeLocal DNSCache, which is in no pod's network", async () => {
    expect(await peers()).toEqual([{ namespaceSelector: {} }, { ipBlock: { cidr: "169.254.20.10/32" } }]);
  });

  test("of those alone that are named, and never of everybody by an empty list", async () => {
    const system = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } };
    expect(await peers("--set-json", `networkPolicy.dnsTo=${JSON.stringify([system])}`)).toEqual([system]);
    const some = await peers();
    for (const empty of ["networkPolicy.dnsTo=[]", "networkPolicy.dnsTo=null"])
      expect(await peers("--set-json", empty)).toEqual(some);
  });
});

describe("replicas and slots that make no sense are refused, with what to do", () => {
  const nats = "store.type=nats,nats.url=nats://nats:4222";
  const fleet = `${nats},slots=64`;

  test.each([
    ["slots=64", /store\.type is auto: set store\.type=nats/],
    ["slots=64,store.type=sqlite", /store\.type is sqlite: set store\.type=nats/],
    [`${nats},slots=8,replicas=9`, /replicas=9 is more than slots=8/],
    [`${fleet},replicas=513`, /replicas/],
    [`${nats},slots=513`, /slots/],
    ["replicas=4", /replicas above 3 need slots/],
    [`${nats},replicas=4`, /set slots=64/],
    [
      `${nats},replicas=2,autoscaling.enabled=true`,
      /autoscaling\.enabled needs slots.*; set slots=64, or autoscaling\.enabled=false/,
    ],
    [`${fleet},autoscaling.enabled=true,autoscaling.minReplicas=9`, /above autoscaling\.maxReplicas/],
    [`${fleet},autoscaling.enabled=true,autoscaling.maxReplicas=65`, /more than slots=64/],
    [`${fleet},autoscaling.enabled=true,autoscaling.cpuMillicores=0`, /autoscaling\.oldestEventSeconds/],
  ])("%s", async (values, hint) => {
    await expect(render("--set", values)).rejects.toThrow(hint);
  });
});
