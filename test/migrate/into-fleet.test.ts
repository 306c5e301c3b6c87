import { expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { FleetEntry } from "../../runtime/migrate/fleet-entry.ts";
import { fleetPlace, positionsKey } from "../../runtime/migrate/location.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { folderOf } from "../tools/folder.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("a replica waits for an API server that goes away, whichever of its requests has no answer", async () => {
  for (const missing of [1, 2, 3]) {
    const clock = new VirtualClock();
    let requests = 0;
    // Another replica holds the Lease and migrates the checkpoints.
    const json = async () => {
      requests++;
      if (requests === missing) throw new WatchfireError("WF_KUBE_UNREACHABLE", { what: "it does not answer" });
      const where = requests > 4 ? fleetPlace(4) : "kubernetes";
      return {
        metadata: { name: "l", uid: "u", resourceVersion: `${requests}`, annotations: { [positionsKey]: where } },
        spec: { holderIdentity: "another", leaseDurationSeconds: 10, renewTime: `${requests}` },
      };
    };
    const entry = new FleetEntry({
      transport: { json } as unknown as KubeTransport,
      ...{ namespace: "ns", data: folderOf({}), slots: 4, identity: "me", cluster: undefined, clock },
      manifests: async () => [],
      random: () => 0.5,
      log: createLog("error", { write: () => {} }),
    });
    const entered = entry.enter(new AbortController().signal).then(({ where }) => where, String);
    await clock.advance(20_000);
    expect(await entered).toBe(fleetPlace(4));
  }
});

test("what a replica waits for that has a code is said by that code alone", async () => {
  const clock = new VirtualClock();
  const json = async () => {
    throw new WatchfireError("WF_KUBE_UNREACHABLE", { what: "it does not answer" });
  };
  const entry = new FleetEntry({
    transport: { json } as unknown as KubeTransport,
    ...{ namespace: "ns", data: folderOf({}), slots: 4, identity: "me", cluster: undefined, clock },
    manifests: async () => [],
    random: () => 0.5,
    log: createLog("error", { write: () => {} }),
  });
  const stop = new AbortController();
  const entered = entry.enter(stop.signal).catch(() => undefined);
  await clock.advance(5_000);
  expect(entry.why?.message).toMatch(/^WF_KUBE_UNREACHABLE: it does not answer; /);
  expect(entry.why?.message).not.toContain("WF_CHECKPOINT_AWAITED");
  stop.abort();
  await entered;
});
