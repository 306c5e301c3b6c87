// The life of one release while a writer writes. The auditor compares after each part.
import { cp, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../tools/until.ts";
import { recorderFolder } from "./images.ts";
import { describeVerdict, faultsOf, Ledger, say } from "./ledger.ts";
import { admin, kubectl, Release } from "./release.ts";

const turn = 1_500;

const watches = async (release: Release) =>
  (await release.status()).functions.find(({ name }) => name === "recorder")?.triggers[0]?.state === "watching";

describe("a release under load", () => {
  let release: Release;
  let ledger: Ledger;

  beforeAll(async () => {
    release = await Release.into("under-load");
    ledger = await Ledger.open();
    await release.grant(recorderFolder);
    await release.helm("install", "recorder");
    await until("the recorder watches", 60_000, () => watches(release));
  });
  afterAll(async () => {
    ledger?.close();
    await release?.uninstall();
  });

  test("a pod that is deleted without grace goes on from its volume, and nothing is lost", async () => {
    const { uid } = (await release.pod()).metadata;
    await ledger.amidWriting(turn, "pod deleted without grace", () => release.deletePodAtOnce());
    expect((await release.pod()).metadata.uid).not.toBe(uid);
  });

  test("a runtime that is killed goes on in the same pod, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "runtime killed", () => release.kill("watchfire"));
    expect((await release.container("watchfire")).restartCount).toBe(1);
  });

  test("executors that are killed are replaced, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "executors killed", () => release.kill("executor"));
    expect((await release.container("watchfire")).restartCount).toBe(1);
  });

  test("a changed function is taken up by `watchfire deploy` without a restart, and nothing is lost", async () => {
    const folder = await mkdtemp(join(tmpdir(), "watchfire-changed-"));
    await cp(recorderFolder, folder, { recursive: true });
    const handler = join(folder, "recorder/handler.ts");
    await writeFile(
      handler,
      (await readFile(handler, "utf8")).replace("id: event.id,", 'id: event.id,\n    code: "new",'),
    );
    const { restartCount } = await release.container("watchfire");
    const isNew = async () => {
      // Writes more, because the load may have ended while the deployment was built, and the new code needs events.
      ledger.write(20);
      const last = await admin.get("/api/v1/namespaces/audit-records/configmaps");
      return last.items.some(({ data }) => data?.code === "new");
    };
    await ledger.amidWriting(turn, "changed function deployed", async () => {
      await release.deploy(folder);
      const began = performance.now();
      await until("the new code runs", 60_000, isNew);
      say(`from the deployment to the new code's first delivery: ${((performance.now() - began) / 1000).toFixed(1)} s`);
    });
    expect((await release.container("watchfire")).restartCount).toBe(restartCount);
  });

  test("an upgrade to two replicas carries positions over, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "upgraded to two replicas", () => release.helm("upgrade", "recorder", "replicas=2"));
    const roles = await Promise.all([0, 1].map(async (ordinal) => (await release.status(ordinal)).role));
    expect(roles.toSorted()).toEqual(["active", "standby"]);
  });

  test("a standby takes over within 15 s from an active pod that is gone, and nothing is lost", async () => {
    const active = await release.active([0, 1]);
    await ledger.amidWriting(turn, "active pod gone", async () => {
      const began = performance.now();
      await Promise.all([release.kill("watchfire", active), release.deletePodAtOnce(active)]);
      await until("the standby is active", 15_000, async () => (await release.status(1 - active)).role === "active");
      say(`takeover: ${((performance.now() - began) / 1000).toFixed(1)} s`);
    });
  });

  test("an upgrade back to one replica carries positions back, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "back to one replica", () => release.helm("upgrade", "recorder", "replicas=1"));
    expect((await release.status()).role).toBe("active");
  });

  test("an uninstall leaves what holds data and what others made, and a new installation goes on from there", async () => {
    await release.uninstall();
    const kinds = "all,pvc,secrets,leases,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets";
    const left = await kubectl(["-n", release.namespace, "get", kinds, "-o", "name"]);
    say(`left after the uninstall:\n      ${left.trim().split("\n").join("\n      ")}`);
    expect(left).toContain("persistentvolumeclaim/data-watchfire-0");
    expect(left).not.toMatch(/statefulset|pod\/|poddisruptionbudget|service\/watchfire/);
    ledger.write(200);
    await release.helm("install", "recorder");
    const verdict = await ledger.verdict();
    say(`installed again: ${describeVerdict(verdict)}`);
    expect(faultsOf(verdict)).toEqual([]);
  });
});
