// One release changes from a replica with a volume to a fleet on NATS, and back. A writer writes all the time, and the auditor
// compares after each upgrade.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { natsProgram } from "../tools/assets.ts";
import { until } from "../tools/until.ts";
import { Ledger, say } from "./ledger.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { grantRecorders } from "./recorders.ts";
import { admin, kubectl, Release, statusOf } from "./release.ts";

const perSecond = 100;
const slots = 12;

describe.skipIf(natsProgram === undefined)("a release between a volume and a fleet", () => {
  let release: Release;
  let ledger: Ledger;
  let nats: NatsCluster;

  const common = ["identity=runtime", "resources.requests.cpu=50m", "executor.resources.requests.cpu=50m"];
  const onNats = () => [...common, "store.type=nats", `nats.url=${nats.url}`, "replicas=3"];
  /** Upgrades under load. Nothing may be delivered twice, flagged or not. */
  const upgrade = async (what: string, ...sets: readonly string[]) => {
    const { facts, deliveries } = await ledger.whileWriting(perSecond, what, async () => {
      const from = performance.now();
      await release.helm("upgrade", "recorders", ...sets);
      say(`${what}: \`helm upgrade --wait\` took ${((performance.now() - from) / 1000).toFixed(1)} s`);
    });
    expect(deliveries, "each change is delivered once").toBe(facts);
  };
  const workloads = async () =>
    (await kubectl(["-n", release.namespace, "get", "sts,deploy", "-o", "name"])).split("\n").filter(Boolean);
  const place = async () => {
    const lease = await admin.get(`/apis/coordination.k8s.io/v1/namespaces/${release.namespace}/leases/watchfire`);
    return lease.metadata.annotations?.["watchfire.dev/positions"];
  };
  /** The running functions by pod. */
  const running = async () => {
    const statuses = await Promise.all((await release.pods()).map(statusOf));
    return statuses.map(({ functions }) => functions.map(({ name }) => name));
  };

  beforeAll(async () => {
    [nats, release, ledger] = await Promise.all([NatsCluster.start(), Release.into("carried"), Ledger.open()]);
    await grantRecorders(release.namespace);
    await release.helm("install", "recorders", ...common);
  });
  afterAll(async () => {
    ledger?.close();
    await release?.uninstall();
    await nats?.remove();
  });

  test("an upgrade from one replica to three that share carries positions from the volume, and loses and repeats nothing", async () => {
    expect(await place()).toBe("sqlite/watchfire-0");
    await upgrade("to three replicas that share", ...onNats(), `slots=${slots}`);
    expect(await place()).toBe(`fleet/${slots}`);
    expect(await workloads()).toEqual(["statefulset.apps/watchfire", "deployment.apps/watchfire"]);
    expect(await release.logs("watchfire")).toContain("checkpoints moved");
  });

  test("the next upgrade takes the volume's pod away, and loses and repeats nothing", async () => {
    await upgrade("without the volume's pod", ...onNats(), `slots=${slots}`);
    await until("its pod is gone", 60_000, async () => (await release.pods()).length === 3);
    expect(await workloads()).toEqual(["deployment.apps/watchfire"]);
    expect((await running()).flat().toSorted()).toEqual(Array.from({ length: 10 }, (_, share) => `recorder-${share}`));
  });

  test("an upgrade to another number of slots carries them over, and loses and repeats nothing", async () => {
    await upgrade("to more slots", ...onNats(), `slots=${slots + 4}`);
    expect(await place()).toBe(`fleet/${slots + 4}`);
  });

  test("an upgrade back to one replica carries positions to its volume, and loses and repeats nothing", async () => {
    await upgrade("back to one replica", ...common, `nats.url=${nats.url}`);
    expect(await place()).toBe("sqlite/watchfire-0");
    expect(await workloads()).toEqual(["statefulset.apps/watchfire"]);
    expect((await release.status()).role).toBe("active");
    expect(await running()).toHaveLength(1);
  });

  test("and it does without NATS from then on", async () => {
    await upgrade("without NATS", ...common);
  });
});
