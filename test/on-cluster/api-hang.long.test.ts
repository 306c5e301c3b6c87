// A replica in a pod's container while the API server does not answer for longer than a term of the Lease.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { describe as inWords } from "../audit/audit.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import { admin, unique } from "../target/fixture.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { Relay } from "../tools/relay.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
/** Variable that the kubelet sets in each container. */
const env = { KUBERNETES_SERVICE_HOST: "10.96.0.1" };

test("a lone replica goes on in its container after each time that the API server hangs, and misses nothing", async () => {
  await using relay = await Relay.to(access.url);
  await using on = await ReplicasFixture.set(admin, access, unique("hang"));
  const folder = await mkdtemp(join(tmpdir(), "watchfire-hang-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, kubeconfigOf({ ...access, url: relay.url }), { mode: 0o600 });
  const replica = await on.start("kubernetes", { kubeconfig, env });
  await on.begins(replica);
  await on.load(50);
  for (const times of [1, 2]) {
    relay.hang();
    on.write(30);
    const restarts = async () => (await replica.log()).split("starting again in this process").length - 1;
    await until("it has given up the Lease", 30_000, async () => (await restarts()) === times);
    expect(replica.exitStatus).toBeNull();
    relay.goOn();
    await on.takesOver(replica);
    await on.load(50);
  }
  const verdict = await on.verdict();
  expect(verdict, inWords(verdict)).toMatchObject({ missed: [], unflagged: [], disordered: [], invented: [] });
  replica.signal("SIGTERM");
  expect(await replica.ended()).toBe(0);
}, 240_000);
