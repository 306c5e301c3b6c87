// Replicas that share the functions, deployed by the chart, on NATS in three pods. Replicas are added and removed while a writer
// writes. The auditor compares after each part.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Status } from "../../runtime/host/status.ts";
import { natsProgram } from "../tools/assets.ts";
import { until } from "../tools/until.ts";
import { Ledger, say } from "./ledger.ts";
import { NatsCluster } from "./nats-cluster.ts";
import { grantRecorders } from "./recorders.ts";
import { killContainer, kubectl, Release, statusOf } from "./release.ts";

const slots = 12;
const turn = 800;
/** How long a dead replica's slots may be without an owner, in milliseconds: 15 s, plus the delay of a busy node. */
const takeoverMs = 20_000;

const running = ({ fleet }: Status) => (fleet?.slots ?? []).filter(({ state }) => state === "running").length;

describe.skipIf(natsProgram === undefined)("a fleet", () => {
  let release: Release;
  let ledger: Ledger;
  let nats: NatsCluster;

  const upgrade = (verb: "install" | "upgrade", ...sets: readonly string[]) =>
    release.helm(
      verb,
      "recorders",
      `slots=${slots}`,
      "identity=runtime",
      "store.type=nats",
      `nats.url=${nats.url}`,
      "resources.requests.cpu=50m",
      "executor.resources.requests.cpu=50m",
      ...sets,
    );

  beforeAll(async () => {
    [nats, release, ledger] = await Promise.all([NatsCluster.start(), Release.into("fleet"), Ledger.open()]);
    await grantRecorders(release.namespace);
    await upgrade("install", "replicas=1");
    await balanced(1);
  });
  afterAll(async () => {
    ledger?.close();
    await release?.uninstall();
    await nats?.remove();
  });

  /** Milliseconds until so many replicas run all slots, evenly distributed, and are ready. */
  async function balanced(replicas: number): Promise<number> {
    const from = performance.now();
    await until(`${replicas} replicas run all slots`, 90_000, async () => {
      const pods = await release.pods();
      const counts = await Promise.all(pods.map(async (pod) => running(await statusOf(pod)))).catch(() => []);
      const isEven = Math.max(...counts) - Math.min(...counts) <= 1;
      return counts.length === replicas && isEven && counts.reduce((a, b) => a + b) === slots;
    });
    return performance.now() - from;
  }

  const scale = (replicas: number) =>
    kubectl(["-n", release.namespace, "scale", "deployment/watchfire", `--replicas=${replicas}`]);

  test("goes from one replica to two, to three and back to two, and repeats nothing", async () => {
    const { flagged } = await ledger.amidWriting(turn, "scaled 1, 2, 3, 2", async () => {
      for (const replicas of [2, 3, 2]) {
        ledger.write(turn / 2);
        await scale(replicas);
        say(`${replicas} replicas: balanced in ${((await balanced(replicas)) / 1000).toFixed(1)} s`);
      }
    });
    expect(flagged).toBe(0);
    const name = (await release.pods())[0]?.metadata.name ?? "";
    const shown = await kubectl(["-n", release.namespace, "exec", name, "-c", "watchfire", "--", "watchfire", "slots"]);
    expect(shown).toContain("sees 2 replicas");
    expect(shown.match(/recorder-\d/g)?.toSorted()).toEqual(Array.from({ length: 10 }, (_, n) => `recorder-${n}`));
  });

  test("a rollout repeats nothing", async () => {
    const before = new Set((await release.pods()).map(({ metadata }) => metadata.name));
    const { flagged } = await ledger.amidWriting(turn, "rolled out", async () => {
      await upgrade("upgrade", "replicas=2", "podAnnotations.turn=second");
      await balanced(2);
    });
    expect((await release.pods()).filter(({ metadata }) => before.has(metadata.name))).toEqual([]);
    expect(flagged).toBe(0);
  });

  test("a runtime that is killed takes its slots again in the same pod, and nothing is lost", async () => {
    const [pod] = await release.pods();
    await ledger.amidWriting(turn, "runtime killed", async () => {
      if (pod) killContainer(pod, "watchfire");
      say(`balanced in ${((await balanced(2)) / 1000).toFixed(1)} s`);
    });
  });

  test("a pod that is gone at once has its slots taken by others, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "pod gone", async () => {
      const [gone, left] = await release.pods();
      if (!gone || !left) throw new Error("there were to be two pods");
      const { name } = gone.metadata;
      const isGone = (owner: string) => owner.startsWith(`${name}_`);
      const before = (await statusOf(left)).fleet?.slots ?? [];
      const orphans = new Set(before.filter(({ owner }) => isGone(owner)).map(({ slot }) => slot));
      expect(orphans.size).toBe(slots / 2);
      await kubectl(["-n", release.namespace, "delete", "pod", name, "--grace-period=0", "--force", "--wait=false"]);
      // As on a lost node, no process has time to release anything.
      killContainer(gone, "watchfire");
      const began = performance.now();
      // Slots move to the replacement pod, too. A slot counts once another replica has had it.
      await until("its slots have had owners that live", takeoverMs, async () => {
        for (const { slot, owner } of (await statusOf(left)).fleet?.slots ?? []) {
          if (owner !== "" && !isGone(owner)) orphans.delete(slot);
        }
        return orphans.size === 0;
      });
      say(`its slots taken: ${((performance.now() - began) / 1000).toFixed(1)} s`);
      await balanced(2);
    });
  });

  test("a nats-server that is killed holds events up, and nothing is lost", async () => {
    await ledger.amidWriting(turn, "nats-server killed", async () => {
      await nats.kill(0);
      await nats.isWhole();
    });
    await balanced(2);
  });
});
