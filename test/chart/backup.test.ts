import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { read } from "../readme/sections.ts";
import type { Body } from "../target/client.ts";
import { only, release, render } from "./helm.ts";

const nightly = ["--set", "backup.schedule=0 3 * * *"];
const toClaim = [...nightly, "--set", "backup.to=backups"];
const onNats = ["--set", "store.type=nats,nats.url=nats://nats.nats:4222,nats.existingSecret.name=user"];

const jobOf = (objects: readonly Body[]) => only(objects, "CronJob").spec.jobTemplate.spec.template;
const mountsOf = (objects: readonly Body[]) =>
  Object.fromEntries(
    jobOf(objects).spec.volumes.map(({ name, persistentVolumeClaim: claim }: Body) => [name, claim?.claimName]),
  );

test("without a schedule there is no job", async () => {
  expect((await render()).filter(({ kind }) => kind === "CronJob")).toEqual([]);
});

describe("with checkpoints on a volume, the job", () => {
  test("mounts the volume and the claim on the pod's node, and has neither token nor rights", async () => {
    const objects = await render(...toClaim, "--set", "backup.keep=3");
    const { spec } = jobOf(objects);
    const [container] = spec.containers;
    expect(container.args).toEqual(["backup", "--store=sqlite", "--to=/backup/", "--keep=3"]);
    expect(mountsOf(objects)).toEqual({ tmp: undefined, backup: "backups", data: `data-${release}-0` });
    expect([spec.automountServiceAccountToken, spec.serviceAccountName]).toEqual([false, undefined]);
    const [term] = spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution;
    const { metadata } = only(objects, "StatefulSet").spec.template;
    expect(metadata.labels).toMatchObject(term.labelSelector.matchLabels);
    expect(objects.filter(({ metadata: { name } }) => name === `${release}.backup`)).toEqual([]);
  });

  test("is no pod that the Service, the budget or the StatefulSet select", async () => {
    const objects = await render(...toClaim);
    const { labels } = jobOf(objects).metadata;
    for (const kind of ["Service", "PodDisruptionBudget", "StatefulSet"]) {
      const { selector } = only(objects, kind).spec;
      const wanted: Record<string, string> = selector.matchLabels ?? selector;
      expect(
        Object.entries(wanted).every(([key, value]) => labels[key] === value),
        kind,
      ).toBe(false);
    }
  });

  test("is refused where the volume is lost with the pod, or cannot be mounted twice", async () => {
    await expect(render(...toClaim, "--set", "persistence.enabled=false")).rejects.toThrow("persistence.enabled");
    const alone = "persistence.accessModes={ReadWriteOncePod}";
    await expect(render(...toClaim, "--set", alone)).rejects.toThrow("persistence.accessModes");
  });
});

test("with checkpoints in Secrets, the job may read those and nothing else, as an account that no function has", async () => {
  const objects = await render(...toClaim, "--set", "replicas=2");
  expect(jobOf(objects).spec).toMatchObject({
    serviceAccountName: `${release}.backup`,
    automountServiceAccountToken: false,
  });
  expect(mountsOf(objects)).toEqual({ tmp: undefined, backup: "backups", account: undefined });
  const role = objects.find(({ kind, metadata }) => kind === "Role" && metadata.name === `${release}.backup`);
  const names = Array.from({ length: 8 }, (_, index) => `${release}-checkpoint-${index}`);
  expect(role?.rules).toEqual([{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs: ["get"] }]);
});

test("with checkpoints on NATS, the job has the runtime's credentials, and may read its Lease", async () => {
  const objects = await render(...toClaim, ...onNats, "--set", "slots=64,replicas=3");
  const [container] = jobOf(objects).spec.containers;
  expect(container.args).toEqual(
    expect.arrayContaining(["--store=nats", "--nats=nats://nats.nats:4222", `--service-account=${release}`]),
  );
  expect(container.volumeMounts).toContainEqual({ name: "nats", mountPath: "/etc/watchfire/nats", readOnly: true });
  const role = objects.find(({ kind, metadata }) => kind === "Role" && metadata.name === `${release}.backup`);
  expect(role?.rules).toMatchObject([{ resources: ["leases"], resourceNames: [release], verbs: ["get"] }]);
});

test("the job has the annotations of every object, and the pod's runtime class and DNS", async () => {
  const more = ["--set", "commonAnnotations.owner=platform,runtimeClassName=gvisor,dnsPolicy=Default"];
  const objects = await render(...toClaim, ...more, "--set", "replicas=2");
  const ours = objects.filter(({ metadata: { name } }) => /[.-]backup$/.test(name));
  expect(ours.map(({ kind }) => kind).sort()).toEqual(["CronJob", "Role", "RoleBinding", "ServiceAccount"]);
  for (const { kind, metadata } of [...ours, { kind: "pod", ...jobOf(objects) }])
    expect(metadata.annotations, kind).toEqual({ owner: "platform" });
  expect(jobOf(objects).spec).toMatchObject({ runtimeClassName: "gvisor", dnsPolicy: "Default" });
});

test("a URL is only in the job's environment, and no function may touch its Secret or the claim", async () => {
  const byUrl = [...nightly, "--set", "backup.urlSecret.name=upload"];
  const objects = await render(...byUrl);
  const [container] = jobOf(objects).spec.containers;
  expect(container.args).toEqual(["backup", "--store=sqlite"]);
  expect(container.env).toContainEqual({
    name: "WATCHFIRE_BACKUP_TO",
    valueFrom: { secretKeyRef: { name: "upload", key: "url" } },
  });
  const reserved = async (...values: readonly string[]) =>
    only(await render(...values), "StatefulSet").spec.template.spec.containers[0].args;
  expect(await reserved(...byUrl)).toContain("--reserve=upload");
  expect(await reserved(...toClaim)).toContain("--reserve=backups");
});

test("a schedule without a place, two places, and a place without a schedule are refused", async () => {
  await expect(render(...nightly)).rejects.toThrow("backup.schedule needs one place");
  await expect(render(...toClaim, "--set", "backup.urlSecret.name=u")).rejects.toThrow("needs one place");
  await expect(render("--set", "backup.to=backups")).rejects.toThrow("do nothing without backup.schedule");
  await expect(render("--set", "backup.schedule=nightly,backup.to=b")).rejects.toThrow("/backup/schedule");
});

test("the pod of runtime/docs/disaster-recovery.md that restores a volume mounts the chart's, in the chart's image", async () => {
  const [text = ""] = /(?<=<<'END'\n)[\s\S]*?(?=END\n)/.exec(read("runtime/docs/disaster-recovery.md")) ?? [];
  const pod: Body = parse(text);
  const objects = await render(...toClaim);
  const { spec } = only(objects, "StatefulSet");
  const [{ image, securityContext }] = spec.template.spec.containers;
  expect(pod.spec.containers[0]).toMatchObject({ image, securityContext });
  const claims = pod.spec.volumes.map(({ persistentVolumeClaim: claim }: Body) => claim?.claimName);
  expect(claims).toEqual([`data-${release}-0`, "backups", undefined]);
  const { fsGroupChangePolicy: _, ...podSecurity } = spec.template.spec.securityContext;
  expect(pod.spec.securityContext).toEqual(podSecurity);
});

test("a job's name fits, however long the release's is", async () => {
  const objects = await render(...toClaim, "--set", `fullnameOverride=${"a".repeat(52)}`);
  expect(only(objects, "CronJob").metadata.name.length).toBeLessThanOrEqual(52);
});
