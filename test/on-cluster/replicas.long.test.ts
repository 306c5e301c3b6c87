// Runtimes in separate processes that are killed, stopped and restarted while another process writes. The auditor then compares
// the cluster's history with the handlers' records. `npm run audit:replicas` does the same for longer.
import { describe, expect, inject, test } from "vitest";
import { describe as inWords } from "../audit/audit.ts";
import { revision } from "../audit/ledger.ts";
import { ReplicasFixture } from "../audit/replicas-fixture.ts";
import type { Verdict } from "../audit/verdict.ts";
import { admin, unique } from "../target/fixture.ts";
import { until } from "../tools/until.ts";

const { access } = inject("shared");
const noFault = { missed: [], unflagged: [], disordered: [], invented: [] };
/** Limit of the total time of a takeover, in milliseconds. */
const takeoverMs = 15_000;
/** Time after which a Lease that was not released is taken over, in milliseconds. */
const lapseMs = 10_000;
/** Interval of writes of the store in Secrets, in milliseconds. */
const writtenEveryMs = 5_000;

/** Timeout in milliseconds. Each test takes half a minute on an idle machine. */
const limitMs = 240_000;

const fixture = () => ReplicasFixture.set(admin, access, unique("replicas"));

async function faultless(on: ReplicasFixture, what: string): Promise<Verdict> {
  const found = await on.verdict();
  expect(found, inWords(found)).toMatchObject(noFault);
  process.stdout.write(`${what}: ${inWords(found)}\n`);
  return found;
}

// Most of the time is spent waiting for a Lease to lapse.
describe.concurrent("replicas on one store", () => {
  test(
    "miss nothing and repeat nothing unflagged when the active one is killed, and the next told to end at once",
    async () => {
      await using on = await fixture();
      const [first, second, third] = await Promise.all([
        on.start("kubernetes"),
        on.start("kubernetes"),
        on.start("kubernetes"),
      ]);
      const killed = await on.begins(first, second, third);
      const [one = first, other = first] = [first, second, third].filter((each) => each !== killed);
      for (const each of [one, other]) {
        await until("the standby is ready", 20_000, async () => (await each.read("/readyz")).ok);
      }
      const standby = await one.status();
      expect(standby).toMatchObject({ role: "standby", lease: { holder: killed.name } });
      expect(standby.functions.map(({ reason }) => reason)).toEqual(["Standby"]);
      expect(standby.sources.map(({ state }) => state)).toEqual(["standby"]);
      expect((await one.read("/livez")).ok).toBe(true);
      expect(await (await one.read("/metrics")).text()).toContain("watchfire_leader 0");
      expect(await (await killed.read("/metrics")).text()).toContain("watchfire_leader 1");

      await on.load(200);
      on.write(150);
      await killed.kill();
      const { active, ms } = await on.takesOver(one, other);
      expect(ms).toBeLessThan(takeoverMs);
      const before = await on.written();
      await until("it tells what was lost", 20_000, async () => (await on.written()) > before);
      active.signal("SIGTERM");
      expect(await active.ended()).toBe(0);
      expect((await on.takesOver(active === one ? other : one)).ms).toBeLessThan(lapseMs / 2);
      await on.load(50);
      await faultless(on, `takeover after kill -9 in ${Math.round(ms)} ms`);
    },
    limitMs,
  );

  test(
    "miss nothing, repeat nothing that was on record and nothing unflagged when the active one is stopped, and goes on too late",
    async () => {
      await using on = await fixture();
      const secret = `/api/v1/namespaces/${on.namespace}/secrets/watchfire-checkpoint-0`;
      const recorded = async () => (await admin.get(secret)).metadata.resourceVersion;
      const first = await on.start("kubernetes");
      await on.begins(first);
      const second = await on.start("kubernetes");
      await until("it stands by", 20_000, async () => (await second.status()).lease?.holder === first.name);
      await on.load(150);
      await on.allHandledBy(first);
      let [version, since] = [await recorded(), performance.now()];
      const onRecordFor = async (ms: number) => {
        const now = await recorded();
        if (now !== version) [version, since] = [now, performance.now()];
        return performance.now() - since > ms;
      };
      await until("all is on record", 30_000, () => onRecordFor(writtenEveryMs + 1_000), 100);
      const onRecord = await revision(admin);

      await on.load(50);
      on.write(100);
      first.signal("SIGSTOP");
      const { ms } = await on.takesOver(second);
      expect(ms).toBeLessThan(takeoverMs);
      await on.load(100);
      expect(await on.wake(first)).toBe(2);
      expect(await first.log()).toContain("WF_LEASE_LOST");
      await on.load(50);
      await faultless(on, `takeover after SIGSTOP in ${Math.round(ms)} ms`);
      const repeated = (await on.deliveries()).filter((each) => each.flagged && each.resourceVersion <= onRecord);
      expect(repeated).toEqual([]);
    },
    limitMs,
  );

  test(
    "wait for a volume that a process still holds, and carry positions from it to Secrets and back: nothing comes twice",
    async () => {
      await using on = await fixture();
      const lease = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases/watchfire`;
      const place = async () => (await admin.get(lease)).metadata.annotations?.["watchfire.dev/positions"];
      const first = await on.start("sqlite", { pod: "watchfire-a" });
      await on.begins(first);
      expect(await place()).toBe("sqlite/watchfire-a");
      await on.load(100);
      first.signal("SIGSTOP");
      // The next container of the same pod acquires the Lease at once, while the previous process holds the volume.
      const alone = await on.start("sqlite", { pod: "watchfire-a", uid: first.options.uid });
      await until("it waits for the folder", 40_000, async () => (await alone.log()).includes("WF_CHECKPOINT_LOCKED"));
      expect((await alone.status()).role).toBe("standby");
      on.write(50);
      await first.kill();
      await on.takesOver(alone);
      await on.load(50);
      await on.allHandledBy(alone);
      const flagged = (await faultless(on, "a volume that was held")).flagged;

      const other = await on.start("kubernetes", { pod: "watchfire-b" });
      alone.signal("SIGTERM");
      expect(await alone.ended()).toBe(0);
      await until("it says what it waits for", 20_000, async () =>
        (await other.status()).lease?.obstacle?.includes("watchfire-a"),
      );
      const upgraded = await on.start("kubernetes", { pod: "watchfire-a" });
      await on.takesOver(upgraded);
      expect([await place(), (await other.status()).role]).toEqual(["kubernetes", "standby"]);
      await on.load(100);
      await on.allWritten();

      for (const each of [other, upgraded]) {
        each.signal("SIGTERM");
        expect(await each.ended()).toBe(0);
      }
      const back = await on.start("sqlite", { pod: "watchfire-a" });
      await on.takesOver(back);
      expect(await place()).toBe("sqlite/watchfire-a");
      await on.load(100);
      expect((await faultless(on, "from a volume to Secrets and back")).flagged).toBe(flagged);

      back.signal("SIGTERM");
      await back.ended();
      await admin.patch(lease, { metadata: { annotations: { "watchfire.dev/positions": null } } });
      const astray = await on.start("kubernetes", { pod: "watchfire-b" });
      expect(await astray.ended()).toBe(1);
      expect(await astray.log()).toContain("WF_CHECKPOINT_ELSEWHERE");
    },
    limitMs,
  );
});
