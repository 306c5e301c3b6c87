// The backup that the chart's CronJob takes of a release under load, and its restore as the page on disasters describes it.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { until } from "../tools/until.ts";
import { images, recorderFolder } from "./images.ts";
import { Ledger, say } from "./ledger.ts";
import { admin, kubectl, Release } from "./release.ts";

const operations = 1_000;
const page = readFileSync(join(import.meta.dirname, "../../runtime/docs/disaster-recovery.md"), "utf8");
const backups = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "backups" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};
const values = ["backup.schedule=0 3 * * *", "backup.to=backups"];

describe("a release with backups", () => {
  let release: Release;
  let ledger: Ledger;
  /** The backup's file, as its job reports it. */
  let file = "";
  const here = (...args: string[]) => kubectl(["-n", release.namespace, ...args]);

  beforeAll(async () => {
    release = await Release.into("disaster");
    ledger = await Ledger.open();
    await release.grant(recorderFolder);
    await kubectl(["-n", release.namespace, "apply", "-f", "-"], JSON.stringify(backups));
    await release.helm("install", "recorder", ...values);
  });
  afterAll(async () => {
    ledger?.close();
    await release?.uninstall();
  });

  test("the CronJob's pod takes a backup while the runtime works, and nothing is lost or repeated", async () => {
    const verdict = await ledger.amidWriting(operations, "backup taken", async () => {
      await here("create", "job", "--from=cronjob/watchfire-backup", "now");
      await here("wait", "--for=condition=complete", "--timeout=120s", "job/now");
    });
    expect(verdict.flagged).toBe(0);
    const said = await here("logs", "job/now");
    say(said.trim());
    file = /\/backup\/(watchfire-backup-\w+\.db)/.exec(said)?.[1] ?? "";
    expect(file).not.toBe("");
  });

  test("the page's pod puts it back after later changes, and nothing is missed, and nothing repeated without its flag", async () => {
    await ledger.amidWriting(operations, "after the backup", async () => undefined);
    const [text = ""] = /(?<=<<'END'\n)[\s\S]*?(?=END\n)/.exec(page) ?? [];
    const pod = parse(text);
    const [container] = pod.spec.containers;
    pod.metadata.namespace = release.namespace;
    container.image = `${images.recorder.repository}:${images.recorder.tag}`;
    container.imagePullPolicy = "Never";
    container.args = [...container.args.slice(0, -1), `--from=/backup/${file}`, "--yes"];
    await ledger.amidWriting(operations, "restored", async () => {
      await here("scale", "statefulset", "watchfire", "--replicas=0");
      await until(
        "the pod is gone",
        90_000,
        async () => (await admin.reply("GET", `${release.path}/pods/watchfire-0`)).status === 404,
      );
      await kubectl(["-n", release.namespace, "apply", "-f", "-"], JSON.stringify(pod));
      await here("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/restore");
      say((await here("logs", "restore")).trim());
      await here("delete", "pod", "restore");
      await here("scale", "statefulset", "watchfire", "--replicas=1");
    });
  });
});
