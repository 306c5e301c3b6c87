import { describe, expect, it } from "vitest";
import type { Outcome } from "../../runtime/dispatch/delivery/delivery.ts";
import type { Trigger } from "../../runtime/manifest/function.ts";
import { resourceVersion } from "../../runtime/resource-version.ts";
import { change, DispatchFixture, type DispatchOptions, done, failure, manifest, quiet, trigger } from "./fixture.ts";

const pods = (key: Trigger["key"]): Trigger => trigger({ name: "pods", kind: "Pod", ...(key && { key }) });
const byOwner = pods({ type: "owner", apiVersion: "v1", kind: "ConfigMap" });
const byLabel = pods({ type: "expression", expression: "object.spec.of" });

const reconciler = (over: Parameters<typeof manifest>[0] = {}, child = byOwner) =>
  manifest({ mode: "Reconcile", ...over }, [trigger(), child]);

/** A reconciler of ConfigMaps and their Pods, both of which are listed. */
async function open(
  options: DispatchOptions = {},
): Promise<DispatchFixture & { pods: DispatchFixture["subscription"] }> {
  const fixture = await DispatchFixture.open({ manifest: reconciler(), ...options });
  return withPods(fixture);
}

async function withPods(fixture: DispatchFixture, list = true) {
  const children = fixture.function.subscription("pods", { selection: "all", namespace: "" });
  if (list) {
    await fixture.listed();
    children.list("initial", undefined).end(resourceVersion("1"));
    await quiet(fixture.runner);
    await fixture.clock.advance(200);
  }
  return Object.assign(fixture, { pods: children });
}

/** A Pod that these ConfigMaps own. */
function owned(type: "Added" | "Modified" | "Deleted", name: string, rv: number, ...owners: string[]) {
  const made = change(type, name, rv);
  const object = JSON.parse(made.body.toString());
  object.metadata.ownerReferences = owners.map((owner) => ({ apiVersion: "v1", kind: "ConfigMap", name: owner }));
  return { ...made, body: Buffer.from(JSON.stringify(object)) };
}

/** Runs in short: the key, the object's resourceVersion, and what woke it. */
const runs = ({ runner }: DispatchFixture) =>
  runner.deliveries.map(({ object, body, causes = [], attempt, redelivered }) => {
    const state = body.length === 0 ? "gone" : JSON.parse(body.toString()).metadata.resourceVersion;
    const why = causes.map(({ type, trigger: of, name }) => [type, of, name].filter(Boolean).join(" "));
    return `${object.name}@${state} <- ${why.join(", ")}${attempt > 1 ? ` #${attempt}` : ""}${redelivered ? " !" : ""}`;
  });

describe("a key", () => {
  it("runs once for all that waited while it ran, with the newest state, and never twice at once", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.subscription.change(change("Modified", "shop", 12));
    fixture.subscription.change(change("Modified", "shop", 13));
    fixture.pods.change(owned("Added", "web", 14, "shop"));
    fixture.pods.change(owned("Added", "db", 15, "shop"));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries).toHaveLength(1);
    await fixture.runner.end("shop");
    await fixture.runner.end("shop");
    expect(runs(fixture)).toEqual([
      "shop@11 <- Added settings shop",
      "shop@13 <- Modified settings shop, Added pods web, Added pods db",
    ]);
    await fixture.clock.advance(1_000);
    expect(fixture.disk.spill.size).toBe(0);
  });

  it("brings the newest state of each change that woke it, against which reads are held, and tells nobody else", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    for (const rv of [13, 15]) fixture.pods.change(owned("Modified", "web", rv, "shop"));
    fixture.pods.change(owned("Added", "db", 16, "shop"));
    fixture.pods.change(owned("Deleted", "db", 17, "shop"));
    await quiet(fixture.runner);
    const rows = JSON.stringify([...fixture.disk.spill.values()].map(({ pending }) => pending));
    await fixture.runner.end("shop");
    const { seen = [], causes } = fixture.runner.deliveries[1] ?? {};
    expect(seen.map(({ trigger: of, type, object, resourceVersion: at }) => [of, type, object.name, at])).toEqual([
      ["pods", "Modified", "web", "15"],
      ["pods", "Deleted", "db", "17"],
    ]);
    expect(rows + JSON.stringify(causes)).not.toMatch(/seen|resourceVersion/);
  });

  it("is told of its object's end by its absence", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11));
    await quiet(fixture.runner);
    fixture.subscription.change(change("Deleted", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop", "shop@gone <- Deleted settings shop"]);
  });

  it("is woken where an object comes from, and where it goes to", async () => {
    const fixture = await open({ manifest: reconciler({}, byLabel) });
    for (const name of ["a", "b"]) fixture.subscription.change(change("Added", name, 11));
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    fixture.pods.change(change("Added", "pod", 12, { spec: { of: "a" } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Modified", "pod", 13, { spec: { of: ["b", "team-a/a"] } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Modified", "pod", 14, { spec: { of: "b" } }));
    await quiet(fixture.runner);
    fixture.pods.change(change("Deleted", "pod", 15, { spec: { of: "b" } }));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual([
      "a@11 <- Added pods pod",
      "b@11 <- Modified pods pod",
      "a@11 <- Modified pods pod",
      "b@11 <- Modified pods pod",
      "a@11 <- Modified pods pod",
      "b@11 <- Deleted pods pod",
    ]);
  });

  it("is not woken by an object without such an owner, which is filtered with that reason", async () => {
    const fixture = await open();
    fixture.pods.change(change("Added", "web", 11));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries).toEqual([]);
    expect(Object.fromEntries(fixture.outcomes)).toEqual({ filtered: 1 });
    const { filtered } = await fixture.function.object("pods", { namespace: "team-a", name: "web" });
    expect(filtered.map(({ why }) => why.type)).toEqual(["key"]);
  });

  it("is shown to a person who asks whom a change would wake: where the object is, where it leaves, or why nowhere", async () => {
    const fixture = await open({ manifest: reconciler({}, byLabel) });
    fixture.pods.change(change("Added", "pod", 12, { spec: { of: "a" } }));
    await fixture.clock.advance(1_000);
    const wakes = async (of: unknown, trigger = "pods") => {
      const seen = change("Modified", "pod", 13, { spec: { of } });
      return (await fixture.function.object(trigger, { namespace: "team-a", name: "pod" }, seen)).wakes;
    };
    expect(await wakes("a")).toEqual({ now: { keys: ["team-a/a"] }, left: [] });
    expect(await wakes(["b", "team-b/c"])).toEqual({ now: { keys: ["team-a/b", "team-b/c"] }, left: ["team-a/a"] });
    expect(await wakes([])).toMatchObject({ now: { heldBack: { type: "key" } }, left: ["team-a/a"] });
    expect(await wakes(7)).toMatchObject({ now: { heldBack: { type: "keyError" } } });
    expect(await wakes("a", "settings")).toEqual({ now: { keys: ["team-a/pod"] }, left: [] });
    expect((await fixture.function.object("pods", { namespace: "team-a", name: "pod" })).wakes).toBeUndefined();
  });

  it("runs only once its object is known, or known to be gone", async () => {
    const fixture = await withPods(await DispatchFixture.open({ manifest: reconciler() }), false);
    fixture.pods.list("initial", undefined).end(resourceVersion("1"));
    fixture.pods.change(owned("Added", "web", 11, "shop"));
    await fixture.clock.advance(60_000);
    expect(fixture.runner.deliveries).toEqual([]);
    await fixture.list(5, [change("Added", "shop", 4)], "initial");
    await fixture.clock.advance(1_000);
    expect(runs(fixture)).toEqual(["shop@4 <- Added pods web, Added settings shop"]);
  });

  it("is the owner's own where that has no namespace", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11, { namespace: "" }));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    expect(fixture.runner.deliveries.map(({ object }) => object.namespace)).toEqual(["", ""]);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop", "shop@11 <- Added pods web"]);
  });

  it("is the owner's own also after the end of that, and so never runs twice at once", async () => {
    const fixture = await open();
    fixture.subscription.change(change("Added", "shop", 11, { namespace: "" }));
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Deleted", "shop", 13, { namespace: "" }));
    await quiet(fixture.runner);
    fixture.pods.change(owned("Deleted", "web", 14, "shop"));
    await quiet(fixture.runner);
    expect(runs(fixture)).toEqual(["shop@gone <- Deleted settings shop"]);
    await fixture.runner.end("shop");
    expect(fixture.runner.deliveries.map(({ object }) => object.namespace)).toEqual(["", ""]);
  });

  it("that fails is tried again with backoff, and given up until its next change", async () => {
    const fixture = await open();
    fixture.runner.answer = () => failure();
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(999);
    expect(fixture.runner.deliveries).toHaveLength(1);
    await fixture.clock.advance(10_000);
    const first = "shop@11 <- Added settings shop";
    expect(runs(fixture)).toEqual([first, `${first} #2 !`, `${first} #3 !`]);
    expect([...fixture.disk.letters.values()].map(({ name, attempts }) => [name, attempts])).toEqual([["shop", 3]]);
    expect(fixture.disk.spill.size).toBe(0);
    fixture.runner.answer = () => done;
    fixture.subscription.change(change("Modified", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture).at(-1)).toBe("shop@12 <- Modified settings shop");
  });

  it("that waits for a retry runs at once for a newer change, as a first attempt", async () => {
    const fixture = await open({ manifest: reconciler({ onFailure: "Block" }) });
    fixture.runner.answer = ({ resourceVersion: at }) => (at === "11" ? failure() : done);
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(100_000);
    expect(fixture.function.status()).toMatchObject({ blockedLanes: 1 });
    fixture.subscription.change(change("Modified", "shop", 12));
    await quiet(fixture.runner);
    expect(runs(fixture).at(-1)).toBe("shop@12 <- Modified settings shop");
    expect(fixture.function.status()).toMatchObject({ blockedLanes: 0, queued: 0 });
  });

  const busy = { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 300_000, factor: 2 };
  const isOwnWrite = { "while it runs": true, "after its run": false };
  const endings: Record<string, Outcome> = {
    failed: failure(),
    permanent: { type: "permanent", durationMs: 1, error: { name: "Error", message: "no use", stack: "" } },
  };
  for (const [when, meanwhile] of Object.entries(isOwnWrite))
    for (const [ending, outcome] of Object.entries(endings)) {
      it(`rests ever longer where its runs end ${ending} and change its own object ${when}, to half a minute`, async () => {
        const fixture = await open({ manifest: reconciler({ retry: busy }) });
        const begunAt: number[] = [];
        let rv = 11;
        const write = () => fixture.subscription.change(change("Modified", "shop", ++rv));
        fixture.runner.answer = () => {
          begunAt.push(fixture.clock.monotonic());
          // Enough to tell a loop without end.
          if (begunAt.length > 40) return done;
          if (meanwhile) write();
          return outcome;
        };
        fixture.subscription.change(change("Added", "shop", rv));
        for (let second = 0; second < 120; second++) {
          await quiet(fixture.runner);
          if (!meanwhile && begunAt.length < 40) write();
          await fixture.clock.advance(1_000);
        }
        const rests = begunAt.slice(1).map((at, index) => at - (begunAt[index] ?? 0));
        for (const [index, rest] of rests.entries())
          expect(rest).toBeGreaterThanOrEqual(Math.min(30_000, 1_000 * 2 ** index));
        // Someone who mends the object waits no longer.
        expect(Math.max(...rests)).toBeLessThanOrEqual(31_000);
        expect(begunAt.length).toBeGreaterThan(6);
      });
    }

  it("runs at once where a person replays it, though it rests", async () => {
    const fixture = await open({
      manifest: reconciler({ retry: { ...busy, maxAttempts: 1, initialDelayMs: 20_000 } }),
    });
    fixture.runner.answer = () => failure();
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(1_000);
    fixture.runner.answer = () => done;
    const [letter] = await fixture.store.deadLetters();
    const whole = await fixture.store.deadLetter(letter?.letter ?? "");
    if (whole) await fixture.dispatcher.replay(whole);
    await fixture.clock.advance(1_000);
    expect(runs(fixture).at(-1)).toBe("shop@11 <- Replay");
  });

  it("rests also where the process is killed amid it", async () => {
    const options = { manifest: reconciler({ retry: { ...busy, initialDelayMs: 20_000 } }) };
    const first = await open(options);
    first.runner.answer = () => {
      first.subscription.change(change("Modified", "shop", 12));
      return failure();
    };
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    const again = await withPods(await first.restart(options), false);
    again.runner.answer = () => done;
    await again.clock.advance(18_000);
    expect(again.runner.deliveries).toHaveLength(1);
    await again.clock.advance(6_000);
    expect(again.runner.deliveries).toHaveLength(2);
  });

  it("whose run was cut off by the end of the process runs again, flagged", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: reconciler() });
    await withPods(second, false);
    second.runner.answer = () => done;
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@11 <- Added settings shop", "shop@11 <- Added settings shop #2 !"]);
    await second.clock.advance(1_000);
    expect([second.disk.spill.size, second.disk.journal.size]).toEqual([0, 0]);
  });

  it("does not hold the position up while it runs, or waits", async () => {
    const fixture = await open();
    fixture.runner.answer = () => undefined;
    fixture.subscription.change(change("Added", "shop", 11));
    fixture.subscription.bookmark(resourceVersion("20"));
    await quiet(fixture.runner);
    await fixture.clock.advance(1_000);
    expect(fixture.subscription.lowWaterMark).toBe("20");
    expect(fixture.runner.open.size).toBe(1);
  });

  it("asks for a later time without failing, which a restart keeps, and a change comes before", async () => {
    const first = await open();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 60_000 });
    for (const name of ["later", "sooner"]) first.subscription.change(change("Added", name, 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    expect(first.function.status()).toMatchObject({ queued: 0, requeued: 2, failures: 0 });
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: reconciler() });
    second.subscription.change(change("Modified", "sooner", 12));
    await second.clock.advance(50_000);
    expect(second.runner.deliveries).toHaveLength(3);
    await second.clock.advance(10_000);
    expect(runs(second)).toEqual([
      "later@11 <- Added settings later",
      "sooner@11 <- Added settings sooner",
      "sooner@12 <- Modified settings sooner",
      "later@11 <- Requeue",
    ]);
  });

  it("that was given up runs again when its dead letter is replayed", async () => {
    const fixture = await open({
      manifest: reconciler({ retry: { maxAttempts: 1, initialDelayMs: 1, maxDelayMs: 1, factor: 1 } }),
    });
    fixture.runner.answer = () => failure();
    fixture.subscription.change(change("Added", "shop", 11));
    await fixture.clock.advance(1_000);
    fixture.runner.answer = () => done;
    const [letter] = await fixture.store.deadLetters();
    const whole = await fixture.store.deadLetter(letter?.letter ?? "");
    if (whole) await fixture.dispatcher.replay(whole);
    await fixture.clock.advance(1_000);
    expect(runs(fixture).at(-1)).toBe("shop@11 <- Replay");
    expect([fixture.disk.spill.size, fixture.disk.letters.size]).toEqual([0, 0]);
  });

  it("runs at once, flagged by its cause, where a person has its object or one that counts for it told again", async () => {
    const first = await open();
    const child = owned("Added", "web", 12, "shop");
    const shop = change("Added", "shop", 11);
    first.subscription.change(shop);
    first.pods.change(child);
    await first.clock.advance(1_000);
    first.runner.deliveries.length = 0;
    expect(first.function.redeliver("pods", child)).toBe("told");
    await first.clock.advance(1_000);
    expect(first.function.redeliver("settings", shop)).toBe("told");
    await first.clock.advance(1_000);
    expect(runs(first)).toEqual(["shop@11 <- Replay", "shop@11 <- Replay"]);
    expect(first.function.redeliver("settings", change("Modified", "shop", 99))).toBe("news");
    // Once it is saved a kill does not undo it.
    first.dispatcher.hold("copy", "command");
    first.function.redeliver("settings", shop);
    await first.function.saved();
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart({ manifest: reconciler() }), false);
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["shop@11 <- Replay"]);
    await second.clock.advance(1_000);
    expect(second.disk.spill.size).toBe(0);
  });

  it("runs once in each round of a resync, at a moment of its own that a restart does not change", async () => {
    const every = reconciler({ resyncMs: 3_600_000 });
    const first = await open({ manifest: every });
    const names = Array.from({ length: 40 }, (_, index) => `shop-${index}`);
    for (const [index, name] of names.entries()) first.subscription.change(change("Added", name, 11 + index));
    await quiet(first.runner);
    first.runner.deliveries.length = 0;
    await first.clock.advance(1_800_000);
    const half = first.runner.deliveries.length;
    expect(half).toBeGreaterThan(8);
    expect(half).toBeLessThan(32);
    const second = await first.restart({ manifest: every });
    await second.clock.advance(1_800_000 + 60_000);
    const told = second.runner.deliveries.map(({ object }) => object.name);
    expect(new Set(told).size).toBe(40);
    expect(told.length).toBeLessThan(45);
    expect(second.runner.deliveries.every(({ causes }) => causes?.every(({ type }) => type === "Resync"))).toBe(true);
  });

  it("has runs that are told of each object that wakes it, to a person who asks", async () => {
    const fixture = await open({ manifest: reconciler({ onFailure: "Block" }) });
    fixture.runner.answer = () => failure("not yet");
    fixture.subscription.change(change("Added", "shop", 11));
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await quiet(fixture.runner);
    for (const [trigger, name] of [
      ["settings", "shop"],
      ["pods", "web"],
    ] as const) {
      const { runs: past, lane } = await fixture.function.object(trigger, { namespace: "team-a", name });
      expect(past[0]).toMatchObject({ key: "team-a/shop", outcome: "failed", error: "Error: not yet" });
      expect(lane).toMatchObject({ retrying: true, requeued: false, running: false });
    }
    const other = await fixture.function.object("pods", { namespace: "team-a", name: "other" });
    expect([other.runs, other.lane]).toEqual([[], undefined]);
  });

  it("whose body the store has lost is looked up, and runs once that is answered", async () => {
    const first = await open();
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    for (const { known } of first.disk.views.values())
      for (const [key, object] of known) known.set(key, { ...object, body: undefined });
    let asked = 0;
    const look = async () => {
      if (asked++ === 0) throw new Error("the API server is away");
      const { meta, body } = change("Modified", "shop", 20);
      return { ...meta, body };
    };
    const second = await withPods(await first.restart({ manifest: reconciler(), look }), false);
    second.pods.change(owned("Added", "web", 12, "shop"));
    await second.clock.advance(2_000);
    expect(runs(second).at(-1)).toBe("shop@20 <- Added pods web");
    expect(asked).toBe(2);
  });

  it("is woken where an object comes from, and by its end, also where the store has lost the object's body", async () => {
    const options = { manifest: reconciler({}, byLabel) };
    const first = await open(options);
    for (const name of ["a", "b", "c"]) first.subscription.change(change("Added", name, 11));
    first.pods.change(change("Added", "moves", 12, { spec: { of: "a" } }));
    first.pods.change(change("Added", "ends", 13, { spec: { of: "b" } }));
    await first.clock.advance(1_000);
    for (const { trigger: of, known } of first.disk.views.values())
      if (of === "pods") for (const [key, object] of known) known.set(key, { ...object, body: undefined });
    first.runner.deliveries.length = 0;
    const second = await withPods(await first.restart(options), false);
    second.pods.change(change("Modified", "moves", 14, { spec: { of: "c" } }));
    await second.clock.advance(1_000);
    expect(runs(second)).toEqual(["c@11 <- Modified pods moves", "a@11 <- Modified pods moves"]);
    second.runner.deliveries.length = 0;
    second.pods.list("relist", undefined).end(resourceVersion("20"));
    await second.clock.advance(1_000);
    expect(runs(second).sort()).toEqual(["b@11 <- Deleted pods ends", "c@11 <- Deleted pods moves"]);
  });

  it("is woken by a schedule of its function, as long as its object stands", async () => {
    const hourly = { name: "hourly", index: 2, times: { everyMs: 3_600_000 }, jitterMs: 0, missed: "Once" } as const;
    const fixture = await open({ manifest: { ...reconciler(), schedules: [hourly] } });
    for (const it of [change("Added", "a", 11), change("Added", "b", 12), change("Deleted", "b", 13)])
      fixture.subscription.change(it);
    await quiet(fixture.runner);
    fixture.runner.deliveries.length = 0;
    await fixture.clock.advance(3_600_000);
    expect(runs(fixture)).toEqual(["a@11 <- Scheduled hourly"]);
  });

  it("that waits when its function takes events again comes as one event", async () => {
    const first = await open();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "shop", 11));
    await quiet(first.runner);
    const events = manifest({}, [trigger(), pods(undefined)]);
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: events });
    await second.clock.advance(1_000);
    expect(second.runner.told.at(-1)).toContain("Modified shop");
    expect(second.disk.spill.size).toBe(0);
  });

  it("stands for the events that wait when its function begins to reconcile", async () => {
    const events = manifest({ onFailure: "Block" }, [trigger(), pods(undefined)]);
    const first = await open({ manifest: events });
    first.runner.answer = () => failure();
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(100_000);
    expect(first.disk.spill.size).toBe(1);
    first.runner.answer = () => done;
    const second = await first.restart({ manifest: reconciler() });
    await second.clock.advance(1_000);
    expect(runs(second).at(-1)).toBe("shop@11 <- Added settings shop");
    expect(second.disk.spill.size).toBe(0);
  });
});

describe("a handler that is told each event", () => {
  it("gets one again at the time that it asks for, flagged, with no attempt counted, and its lane waits", async () => {
    const fixture = await (await DispatchFixture.open()).listed();
    fixture.runner.answer = ({ resourceVersion: at, redelivered }) =>
      at === "11" && !redelivered ? { ...done, requeueAfterMs: 60_000 } : done;
    for (const it of [change("Added", "a", 11), change("Modified", "a", 12), change("Added", "b", 13)])
      fixture.subscription.change(it);
    await fixture.clock.advance(59_000);
    expect(fixture.runner.told).toEqual(["Added a@11", "Added b@13"]);
    await fixture.clock.advance(1_000);
    expect(fixture.runner.told.slice(2)).toEqual(["Added a@11 !", "Modified a@12"]);
    expect(Object.fromEntries(fixture.outcomes)).toEqual({ ok: 3 });
  });

  it("gets it at that time where the process was killed meanwhile, and its position has gone on", async () => {
    const first = await (await DispatchFixture.open({ manifest: manifest({ mode: "Latest" }) })).listed();
    first.runner.answer = () => ({ ...done, requeueAfterMs: 60_000 });
    first.subscription.change(change("Added", "a", 11));
    first.subscription.bookmark(resourceVersion("20"));
    await quiet(first.runner);
    await first.clock.advance(1_000);
    const second = await first.restart({ manifest: manifest({ mode: "Latest" }) });
    expect(second.subscription.resumeFrom).toBe("20");
    second.runner.answer = () => done;
    await second.clock.advance(58_000);
    expect(second.runner.told).toEqual(["Added a@11"]);
    await second.clock.advance(1_000);
    expect(second.runner.told).toEqual(["Added a@11", "Added a@11 !"]);
    await second.clock.advance(1_000);
    expect(second.disk.spill.size).toBe(0);
  });
});

describe("a debounced key", () => {
  const debounced = { manifest: reconciler({ debounceMs: 2_000 }) };
  const pass = async ({ clock, runner }: DispatchFixture, ms: number) => {
    await quiet(runner);
    await clock.advance(ms);
    await quiet(runner);
  };

  it("runs once when neither its object nor its children changed for the quiet time, for all of them", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    await pass(fixture, 1_000);
    fixture.pods.change(owned("Added", "web", 12, "shop"));
    await pass(fixture, 1_999);
    expect(runs(fixture)).toEqual([]);
    await pass(fixture, 1);
    expect(runs(fixture)).toEqual(["shop@11 <- Added settings shop, Added pods web"]);
  });

  it("whose objects change on and on runs after ten times that", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    for (let rv = 12; rv < 32; rv++) {
      await pass(fixture, 1_000 - (rv === 31 ? 1 : 0));
      fixture.subscription.change(change("Modified", "shop", rv));
    }
    expect(runs(fixture)).toEqual([]);
    await pass(fixture, 1);
    expect(fixture.runner.deliveries).toHaveLength(1);
  });

  it("is not lost by a kill amid its quiet time", async () => {
    const fixture = await open(debounced);
    fixture.subscription.change(change("Added", "shop", 11));
    await pass(fixture, 1_000);
    const again = await withPods(await fixture.restart(debounced), false);
    again.subscription.change(change("Modified", "shop", 12));
    await pass(again, 10_000);
    expect(again.runner.deliveries.length).toBeGreaterThan(0);
  });
});
