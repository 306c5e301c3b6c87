import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Elector, type ElectorOptions, leaseMs } from "../../runtime/lease/elector.ts";
import type { LeaseApi } from "../../runtime/lease/lease-api.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { type Fate, fateOf, ProcessClock, SimulatedLease } from "./simulated-leases.ts";

const prompt: Fate = { thereMs: 5, backMs: 5 };
/** When a holder stops without a renewal. */
const giveUpMs = 7_000;
const silent = { info: () => {}, warn: () => {} };

class Candidate {
  readonly clock: ProcessClock;
  readonly elector: Elector;
  readonly stop = new AbortController();
  fate: () => Fate = () => prompt;
  lostBecause: string | undefined;

  constructor(world: VirtualClock, lease: SimulatedLease, identity: string, more: Partial<ElectorOptions> = {}) {
    this.clock = new ProcessClock(world);
    const { clock } = this;
    const api = lease.api(clock, () => this.fate());
    this.elector = new Elector({ api, identity, clock, random: () => 0.5, log: silent, ...more });
    void this.elector.lost.then((error) => {
      this.lostBecause = error.message;
    });
  }

  run(): this {
    this.elector.campaign(this.stop.signal).catch(() => undefined);
    return this;
  }

  /** The belief while the process runs. */
  get believes(): boolean {
    return !this.clock.stopped && this.elector.holds;
  }
}

/** The identity of a StatefulSet's pod. */
const identityOf = (set: string, ordinal: number) => `${set}-${ordinal}_6f1c0e0a-1f2b-4c3d-8e4f-00000000000${ordinal}`;

const world = () => {
  const clock = new VirtualClock();
  return { clock, lease: new SimulatedLease(clock) };
};

describe("a Lease", () => {
  test("that cannot be annotated is told of with a code, once in the log and in its standing while that is so, and is held on", async () => {
    const { clock, lease } = world();
    const told: string[] = [];
    const tell = (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`);
    let why = "annotations: Too long";
    const open = lease.api(clock, () => prompt);
    const api: LeaseApi = {
      ...open,
      update: (record, change, timeoutMs) =>
        change.annotations && why ? Promise.reject(new Error(why)) : open.update(record, change, timeoutMs),
    };
    const { elector } = new Candidate(clock, lease, "a", { api, log: { info: tell, warn: tell } }).run();
    await clock.advance(1_000);
    let isWritten = false;
    void elector.annotate({ place: "here" }).then(() => {
      isWritten = true;
    });
    await clock.advance(400);
    expect([elector.standing, told.length]).toEqual([undefined, 1]);
    await clock.advance(60_000);
    const { obstacle } = elector.standing ?? {};
    expect(obstacle).toMatch(/^WF_LEASE_UNWRITTEN: .*annotations: Too long/);
    expect(told.slice(1)).toEqual([`lease not written ${JSON.stringify({ error: obstacle })}`]);
    expect([elector.holds, isWritten]).toEqual([true, false]);
    why = "";
    await clock.advance(1_000);
    expect([elector.standing, isWritten, told.at(-1)?.startsWith("lease written again")]).toEqual([
      undefined,
      true,
      true,
    ]);
  });

  test("is raised above a number while it is held, and never lowered; later terms are above it", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_000);
    const raised = Promise.all([a.elector.raise(9), a.elector.raise(4), a.elector.annotate({ place: "here" })]);
    await clock.advance(1_000);
    expect((await raised)[0]).toMatchObject({ lease: "uid-1", number: 10 });
    expect([a.elector.fence?.number, lease.object?.spec.leaseTransitions]).toEqual([10, 10]);
    await clock.advance(60_000);
    expect([a.believes, a.elector.fence?.number]).toEqual([true, 10]);
    void a.elector.release();
    await clock.advance(1_000);
    const b = new Candidate(clock, lease, "b").run();
    await clock.advance(1_000);
    expect(b.elector.fence?.number).toBe(11);
  });

  test("is released also if a raise was under way, and its answer came too late", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_000);
    a.fate = () => ({ ...prompt, thereMs: 50, backMs: 50 });
    void a.elector.raise(9);
    await clock.advance(60);
    void a.elector.release();
    await clock.advance(2_000);
    expect([lease.holder, lease.object?.spec.leaseTransitions]).toEqual(["", 10]);
  });

  test("is not raised by a process that has lost it, not even by one that does not know that yet", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_000);
    lease.seize("b", 10);
    const number = lease.object?.spec.leaseTransitions;
    let fence: unknown = "not answered";
    void a.elector.raise(9).then((raised) => {
      fence = raised;
    });
    await clock.advance(1_000);
    expect([fence, a.believes, lease.holder, lease.object?.spec.leaseTransitions]).toEqual([
      undefined,
      false,
      "b",
      number,
    ]);
  });

  test.each([0, 1])("stays with the process that raises it though %d answers are lost", async (lost) => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_000);
    let left = lost;
    a.fate = () => (left-- > 0 ? { ...prompt, accident: "answer lost" } : prompt);
    let number: number | undefined;
    void a.elector.raise(9).then((raised) => {
      number = raised?.number;
    });
    await clock.advance(lost * 3_000 + 700);
    expect([number, a.believes, lease.object?.spec.leaseTransitions]).toEqual([10, true, 10]);
    await clock.advance(20_000);
    expect(a.believes).toBe(true);
  });

  test("of an equal number, which another process of the same identity took after a restore, is lost", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_000);
    const { object } = lease;
    await clock.advance(3_000);
    const twin = lease.api(clock, () => prompt);
    lease.object = object && { ...object, spec: { ...object.spec, holderIdentity: "", leaseTransitions: 0 } };
    const taken = twin.get(3_000).then((record) => {
      if (!record) throw new Error("it is gone");
      return twin.update(record, { holder: "a", transitions: 1, acquiredAt: clock.now() }, 3_000);
    });
    await clock.advance(3_000);
    expect([(await taken) !== "conflict", a.believes]).toEqual([true, false]);
  });

  test("that is lost because no renewal succeeds is told of with what the last one met", async () => {
    const { clock, lease } = world();
    const open = lease.api(clock, () => prompt);
    let why: string | undefined;
    const api: LeaseApi = {
      ...open,
      update: (...asked) => (why === undefined ? open.update(...asked) : Promise.reject(new Error(why))),
    };
    const candidate = new Candidate(clock, lease, "a", { api }).run();
    await clock.advance(1_000);
    why = "WF_KUBE_CREDENTIALS: Unauthorized";
    await clock.advance(4_000);
    why = undefined;
    await clock.advance(4_000);
    expect(candidate.believes).toBe(true);
    why = "WF_KUBE_CREDENTIALS: no such account";
    await clock.advance(10_000);
    expect(candidate.lostBecause).toContain("could not be renewed in time: WF_KUBE_CREDENTIALS: no such account");
  });

  test("is held by the first who comes, for as long as it is renewed", async () => {
    const { clock, lease } = world();
    const told: object[] = [];
    const log = { ...silent, info: (fields: object, message: string) => void told.push({ ...fields, message }) };
    const [a, b] = [new Candidate(clock, lease, "a").run(), new Candidate(clock, lease, "b", { log })];
    await clock.advance(100);
    b.run();
    for (let minutes = 0; minutes < 10; minutes++) {
      await clock.advance(60_000);
      expect([a.believes, b.believes]).toEqual([true, false]);
    }
    expect(b.elector.candidacy).toEqual({ holder: "a", obstacle: undefined });
    expect(told).toEqual([{ identity: "b", holder: "a", message: "lease held by another" }]);
  });

  test("goes over within 11 s and a look of a holder that is killed, and not before it expires", async () => {
    const { clock, lease } = world();
    const [a, b] = [new Candidate(clock, lease, "a").run(), new Candidate(clock, lease, "b")];
    await clock.advance(100);
    b.run();
    await clock.advance(30_000);
    a.clock.stop(false);
    const from = clock.monotonic();
    while (!b.believes) await clock.advance(50);
    expect(clock.monotonic() - from).toBeGreaterThan(leaseMs - 2_300);
    expect(clock.monotonic() - from).toBeLessThan(leaseMs + 1_300);
  });

  test.each([
    [30_000, 30_000],
    [30_000, 10_000],
  ])("of %i ms goes over after that to one whose own lasts %i ms, and its holder stops before", async (of, own) => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a", { leaseMs: of }).run();
    const b = new Candidate(clock, lease, "b", { leaseMs: own });
    await clock.advance(100);
    b.run();
    await clock.advance(30_000);
    a.fate = () => ({ ...prompt, accident: "lost" });
    const from = clock.monotonic();
    let stoppedAt: number | undefined;
    while (!b.believes) {
      await clock.advance(50);
      if (!a.believes) stoppedAt ??= clock.monotonic() - from;
    }
    expect(clock.monotonic() - from).toBeGreaterThan(of - 6_300);
    expect(clock.monotonic() - from).toBeLessThan(of + 1_300);
    expect(stoppedAt).toBeGreaterThan(0.5 * of);
    expect(stoppedAt).toBeLessThanOrEqual(0.7 * of + 50);
  });

  test("goes over in the same time though somebody else annotates it again and again", async () => {
    const { clock, lease } = world();
    const [a, b] = [new Candidate(clock, lease, "a").run(), new Candidate(clock, lease, "b")];
    await clock.advance(100);
    b.run();
    await clock.advance(30_000);
    a.clock.stop(false);
    for (let second = 0; second < 12; second++) {
      lease.annotate("second", String(second));
      await clock.advance(1_000);
    }
    expect(b.believes).toBe(true);
  });

  test("that is released goes over at the next look", async () => {
    const { clock, lease } = world();
    const [a, b] = [new Candidate(clock, lease, "a").run(), new Candidate(clock, lease, "b")];
    await clock.advance(100);
    b.run();
    await clock.advance(5_000);
    const released = a.elector.release();
    expect(a.believes).toBe(false);
    await clock.advance(1_300);
    await released;
    expect([b.believes, a.lostBecause]).toEqual([true, undefined]);
  });

  test("that comes to a process which was told to end meanwhile is let go of at once", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a");
    a.fate = () => ({ thereMs: 5, backMs: 500 });
    const campaign = a.elector.campaign(a.stop.signal);
    const ended = expect(campaign).rejects.toThrow("told to end");
    await clock.advance(600);
    expect(lease.holder).toBe("a");
    a.stop.abort(new Error("told to end"));
    await clock.advance(2_000);
    await ended;
    expect([lease.holder, a.elector.holds]).toEqual(["", false]);
  });

  test("is taken at once by a process of the same identity, under a higher fence, and its predecessor notices", async () => {
    const { clock, lease } = world();
    const first = new Candidate(clock, lease, "pod_uid").run();
    await clock.advance(100);
    const before = first.elector.fence?.number ?? Number.NaN;
    const second = new Candidate(clock, lease, "pod_uid").run();
    await clock.advance(100);
    expect(second.elector.fence?.number).toBe(before + 1);
    await clock.advance(2_500);
    expect(first.believes).toBe(false);
    expect(second.believes).toBe(true);
  });

  test("that nobody can reach is given up 7 s after the last renewal was sent", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(100);
    a.fate = () => ({ ...prompt, accident: "lost" });
    await clock.advance(giveUpMs - 200);
    expect(a.believes).toBe(true);
    await clock.advance(300);
    expect(a.lostBecause).toContain("WF_LEASE_LOST");
  });

  test("whose renewal was written but not answered is still held", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(100);
    let requests = 0;
    a.fate = () => ({ ...prompt, ...(requests++ % 4 === 0 && { accident: "answer lost" }) });
    await clock.advance(120_000);
    expect(a.believes).toBe(true);
  });

  test("that somebody else annotates is still held, and the annotation stays", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(1_900);
    lease.annotate("note", "mine");
    await clock.advance(3_000);
    const annotated = a.elector.annotate({ positions: "kubernetes" });
    await clock.advance(3_000);
    await annotated;
    expect(a.believes).toBe(true);
    expect(lease.object?.metadata.annotations).toEqual({ note: "mine", positions: "kubernetes" });
  });

  test("that is deleted is nobody's until its holder must know", async () => {
    const { clock, lease } = world();
    const [a, b] = [new Candidate(clock, lease, "a").run(), new Candidate(clock, lease, "b")];
    await clock.advance(100);
    b.run();
    await clock.advance(5_000);
    a.fate = () => ({ ...prompt, accident: "lost" });
    lease.remove();
    await clock.advance(giveUpMs + 1_000);
    expect([a.believes, b.believes]).toEqual([false, false]);
    await clock.advance(4_000);
    expect(b.believes).toBe(true);
  });

  test("that is deleted is made again by a holder that does so, with what it said, before anybody takes it", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a", { makesAgain: true }).run();
    const b = new Candidate(clock, lease, "b");
    await clock.advance(100);
    b.run();
    await Promise.all([a.elector.annotate({ positions: "kubernetes" }), clock.advance(100)]);
    for (let times = 0; times < 5; times++) {
      lease.remove();
      await clock.advance(3_000);
      expect([a.believes, b.believes, lease.holder]).toEqual([true, false, "a"]);
      expect(lease.object?.metadata).toMatchObject({
        uid: a.elector.fence?.lease,
        annotations: { positions: "kubernetes" },
      });
    }
    await Promise.all([a.elector.release(), clock.advance(3_000)]);
    expect([a.believes, b.believes, a.lostBecause]).toEqual([false, true, undefined]);
  });

  test("that is made again is held on where the answer to that is lost", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a", { makesAgain: true }).run();
    await clock.advance(100);
    lease.remove();
    let requests = 0;
    a.fate = () => ({ ...prompt, ...(++requests === 3 && { accident: "answer lost" }) });
    await clock.advance(30_000);
    expect([a.believes, a.lostBecause, lease.holder]).toEqual([true, undefined, "a"]);
    expect(lease.object?.metadata.uid).toBe(a.elector.fence?.lease);
  });

  test("that is deleted is lost to one who came since and made it, also by a holder that would", async () => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a", { makesAgain: true }).run();
    await clock.advance(2_100);
    lease.remove();
    const b = new Candidate(clock, lease, "b").run();
    await clock.advance(3_000);
    expect([a.believes, b.believes, a.lostBecause]).toEqual([false, true, expect.stringContaining("b holds it")]);
  });

  test("is left alone by one that may not have it", async () => {
    const { clock, lease } = world();
    const eligible = ({ positions }: Readonly<Record<string, string>>) =>
      positions ? `they are with ${positions}` : undefined;
    const a = new Candidate(clock, lease, "a").run();
    await clock.advance(100);
    lease.annotate("positions", "a");
    a.clock.stop(false);
    const b = new Candidate(clock, lease, "b", { eligible }).run();
    await clock.advance(60_000);
    expect([b.believes, b.elector.candidacy]).toEqual([false, { holder: "a", obstacle: "they are with a" }]);
    lease.annotate("positions", "");
    await clock.advance(leaseMs + 1_500);
    expect(b.believes).toBe(true);
  });

  test.each([
    ["whose term no replica has", "a stranger", 86_400, "a stranger holds the Lease, for 86400 s at a time"],
    ["who is of another StatefulSet", identityOf("other", 0), 10, "which is not a pod of the StatefulSet wf"],
    ["who is of no StatefulSet", "laptop_4711_0a1b2c3d", 10, "which is not a pod of the StatefulSet wf"],
  ])("held by one %s says so to those who wait, and in the log once", async (_, holder, seconds, said) => {
    const { clock, lease } = world();
    const warnings: unknown[] = [];
    const log = { ...silent, warn: (fields: object, message: string) => warnings.push([fields, message]) };
    lease.seize(holder, seconds);
    const a = new Candidate(clock, lease, identityOf("wf", 0), { log }).run();
    for (let renewals = 0; renewals < 10; renewals++) {
      await clock.advance(5_000);
      lease.seize(holder, seconds);
    }
    expect(a.believes).toBe(false);
    expect(a.elector.candidacy).toEqual({ holder, obstacle: expect.stringContaining(said) });
    const told = { identity: identityOf("wf", 0), holder, reason: expect.stringContaining(said) };
    expect(warnings).toEqual([[told, "lease held by another program"]]);
  });

  test("held by a pod of the same StatefulSet is held by a replica, however long it holds it", async () => {
    const { clock, lease } = world();
    const holder = identityOf("wf", 1);
    lease.seize(holder, 30);
    const a = new Candidate(clock, lease, identityOf("wf", 0)).run();
    await clock.advance(2_000);
    expect(a.elector.candidacy).toEqual({ holder, obstacle: undefined });
  });

  test("whose stranger is gone is taken, and no replica is a stranger", async () => {
    const { clock, lease } = world();
    lease.seize("a stranger", 86_400);
    const a = new Candidate(clock, lease, identityOf("wf", 0)).run();
    const b = new Candidate(clock, lease, identityOf("wf", 1)).run();
    await clock.advance(5_000);
    lease.seize("", 86_400);
    await clock.advance(3_000);
    const [holder, other] = a.believes ? [a, b] : [b, a];
    expect([holder.believes, holder.elector.candidacy]).toEqual([true, undefined]);
    expect(other.elector.candidacy).toEqual({ holder: lease.holder, obstacle: undefined });
  });

  test.each([7_000, 3_600_000, -7_000, -3_600_000])("stays held though wall time is set by %i ms", async (ms) => {
    const { clock, lease } = world();
    const a = new Candidate(clock, lease, "a").run();
    for (let times = 0; times < 5; times++) {
      await clock.advance(3_100);
      clock.step(ms);
      expect(a.believes).toBe(true);
      await clock.advance(1_000);
      expect([a.believes, a.lostBecause]).toEqual([true, undefined]);
    }
    a.clock.stop(true);
    clock.step(-ms);
    await clock.advance(giveUpMs + 100);
    let believed: boolean | undefined;
    a.clock.go(() => {
      believed = a.believes;
    });
    expect(believed).toBe(false);
  });

  test("is given up by a process that wakes up too late, before it does anything else", async () => {
    for (const asleep of [false, true]) {
      const { clock, lease } = world();
      const a = new Candidate(clock, lease, "a").run();
      await clock.advance(3_000);
      a.clock.stop(asleep);
      await clock.advance(giveUpMs + 100);
      let believed: boolean | undefined;
      a.clock.go(() => {
        believed = a.believes;
      });
      expect([asleep, believed]).toEqual([asleep, false]);
    }
  });
});

/** Accidents happen only in bad phases; in good phases every request is prompt. */
const stepOf = fc.record({
  process: fc.nat(2),
  what: fc.constantFrom(
    "good times",
    "good times",
    "bad times",
    "bad times",
    "stop",
    "sleep",
    "go",
    "annotate",
    "release",
  ),
  forMs: fc.oneof(fc.nat(3_000), fc.nat(15_000)),
});

test("two never believe at once that they hold it, whatever becomes of requests and of processes", async () => {
  let takeovers = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(stepOf, { minLength: 8, maxLength: 25 }),
      fc.infiniteStream(fateOf),
      async (steps, fates) => {
        const { clock, lease } = world();
        const badTimes = () => fates.next().value;
        let count = 0;
        const fresh = () => new Candidate(clock, lease, `p${count++}`).run();
        const all = [fresh(), fresh(), fresh()];
        const terms: number[] = [];
        let holder: Candidate | undefined;
        const look = () => {
          const believers = all.filter((each) => each.believes);
          expect(believers.length).toBeLessThanOrEqual(1);
          const [now] = believers;
          if (!now || now === holder) return;
          holder = now;
          terms.push(now.elector.fence?.number ?? Number.NaN);
        };
        for (const { process, what, forMs } of steps) {
          const it = all[process] ?? fresh();
          if (what === "good times") for (const each of all) each.fate = () => prompt;
          if (what === "bad times") it.fate = badTimes;
          if (what === "stop" || what === "sleep") it.clock.stop(what === "sleep");
          if (what === "go") for (const each of all) each.clock.go(look);
          if (what === "annotate") lease.annotate("k", String(forMs));
          if (what === "release") void it.elector.release();
          for (let left = forMs; left > 0; left -= 100) {
            await clock.advance(Math.min(left, 100));
            look();
            // A process that has lost the Lease ends, and another one is started in its place.
            all.forEach((each, index) => {
              if (each.lostBecause !== undefined) all[index] = fresh();
            });
          }
        }
        expect(terms).toEqual([...terms].sort((a, b) => a - b));
        expect(new Set(terms).size).toBe(terms.length);
        takeovers += Math.max(0, terms.length - 1);
        for (const each of all) each.stop.abort();
      },
    ),
    { numRuns: Number(process.env.RUNS ?? 40) },
  );
  expect(takeovers, "the Lease never went from one to another").toBeGreaterThan(0);
}, 120_000);
