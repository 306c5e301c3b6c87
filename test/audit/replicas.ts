// npm run audit:replicas: replicas on one store are killed, stopped and terminated under load, round after round. Runs on the
// embedded cluster, or on a real kube-apiserver if KUBEBUILDER_ASSETS names one. AUDIT_ROUNDS sets the number of rounds.
import { Client } from "../target/client.ts";
import { startTarget, type TargetName } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { describe, isFaultless } from "./audit.ts";
import { ReplicasFixture } from "./replicas-fixture.ts";

const rounds = Number(process.env.AUDIT_ROUNDS ?? 3);
const say = (line: string) => process.stdout.write(`${line}\n`);
const standsBy = (replica: Replica, behind: Replica) =>
  until("it stands by", 40_000, async () => (await replica.status()).lease?.holder === behind.name);

/**
 * In each round, kills the active replica, terminates its successor during the catch-up, and stops the next one until another
 * takes over.
 */
async function inSecrets(on: ReplicasFixture): Promise<boolean> {
  let active = await on.start("kubernetes");
  await on.begins(active);
  for (let round = 1; round <= rounds; round++) {
    const [one, other] = [await on.start("kubernetes"), await on.start("kubernetes")];
    for (const each of [one, other]) await standsBy(each, active);
    await on.load(200);
    on.write(200);
    await active.kill();
    const afterKill = await on.takesOver(one, other);
    const before = await on.written();
    await until("it tells what was lost", 60_000, async () => (await on.written()) > before);
    afterKill.active.signal("SIGTERM");
    await afterKill.active.ended();
    const stopped = afterKill.active === one ? other : one;
    const afterEnd = await on.takesOver(stopped);

    active = await on.start("kubernetes");
    await standsBy(active, stopped);
    await on.load(200);
    on.write(100);
    stopped.signal("SIGSTOP");
    const afterStop = await on.takesOver(active);
    await on.load(100);
    const status = await on.wake(stopped);
    const verdict = await on.verdict();
    const times = [afterKill, afterEnd, afterStop].map(({ ms }) => Math.round(ms)).join(", ");
    say(`  round ${round} of ${rounds}: takeover in ${times} ms; ${describe(verdict)}`);
    if (!isFaultless(verdict) || status !== 2) return false;
  }
  return true;
}

/** A pod is deleted by force and recreated while its process still holds the volume. */
async function onVolume(on: ReplicasFixture): Promise<boolean> {
  const first = await on.start("sqlite");
  await on.begins(first);
  await on.load(200);
  first.signal("SIGSTOP");
  const { pod } = first.options;
  const second = await on.start("sqlite", { pod });
  await until("it waits for the volume", 60_000, async () => (await second.log()).includes("WF_CHECKPOINT_LOCKED"));
  on.write(100);
  await first.kill();
  await on.takesOver(second);
  await on.load(100);
  const verdict = await on.verdict();
  say(`  a volume that was held: ${describe(verdict)}`);
  return isFaultless(verdict);
}

let faultless = true;
const targets: TargetName[] = assetsFolder() === undefined ? ["embedded"] : ["embedded", "real"];
for (const name of targets) {
  say(`on the ${name} cluster`);
  const target = await startTarget(name);
  const admin = new Client(target.access);
  for (const [namespace, scenario] of Object.entries({ secrets: inSecrets, volume: onVolume })) {
    await using on = await ReplicasFixture.set(admin, target.access, namespace);
    faultless = (await scenario(on)) && faultless;
  }
  await admin.close();
  await target.close();
}
say(faultless ? "nothing missed, no duplicate without its flag" : "the promise is broken");
process.exit(faultless ? 0 : 2);
