import { describe, expect, it } from "vitest";
import { MemoryDisk } from "../../../runtime/journal/memory/journal.ts";
import type { Trigger } from "../../../runtime/manifest/function.ts";
import { MemoryStore } from "../../journal/memory-store.ts";
import { change, DispatchFixture, done, manifest, quiet, trigger } from "../fixture.ts";
import { byOwner, open, reconciler, runs, withPods } from "../reconcile/fixture.ts";

const under = (over: Partial<Trigger>) => ({
  manifest: manifest({}, [trigger(over)]),
  selection: over.labelSelector ?? "all",
});
const narrowed = under({ labelSelector: "lot!=0" });
const names = { namespaces: { type: "names", names: ["team-a"] } } as const;
const inTeam = { ...under(names), namespace: "team-a" };

describe("an object whose event a handler had begun with, and that an edit lets go", () => {
  it("is told as Deleted, also where the process ends once more before it is", async () => {
    const first = await DispatchFixture.open(under({}));
    await first.listed();
    first.runner.answer = () => undefined;
    first.subscription.change(change("Added", "a", 11));
    await quiet(first.runner);
    await first.clock.advance(100);
    first.runner.answer = () => done;
    const held = {
      ...narrowed,
      opened: async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command"),
    };
    const second = await first.restart(held);
    await second.list(20, []);
    await second.clock.advance(120_000);
    expect(second.runner.told).toEqual(["Added a@11"]);
    const third = await second.restart(narrowed);
    await quiet(third.runner);
    await third.clock.advance(1_000);
    expect(third.runner.deliveries.slice(1).map(({ type, flags }) => [type, flags.reason])).toEqual([
      ["Deleted", "unselected"],
    ]);
  });
});

describe("an object whose events wait on disk, and that an edit lets go", () => {
  it("is not told at all, where no handler had begun with one", async () => {
    const hold = async ({ dispatcher }: Pick<DispatchFixture, "dispatcher">) => dispatcher.hold("copy", "command");
    const first = await DispatchFixture.open({ ...under({}), opened: hold });
    await first.listed();
    const zero = change("Added", "a", 11);
    const labelled = zero.body.toString().replace('"metadata":{', '"metadata":{"labels":{"lot":"0"},');
    first.subscription.change({ ...zero, body: Buffer.from(labelled) });
    await first.clock.advance(120_000);
    expect(first.disk.spill.size).toBe(1);
    const second = await first.restart(narrowed);
    await second.list(20, []);
    await quiet(second.runner);
    await second.clock.advance(1_000);
    expect([second.runner.told, second.disk.spill.size]).toEqual([[], 0]);
  });
});

describe("a scope that goes from chosen namespaces to all", () => {
  it("leaves no record of attempts at an object that is gone, beside that of one that runs", async () => {
    const first = await (await DispatchFixture.open(inTeam)).listed();
    const second = await (await first.restart(under({}))).listed(20);
    second.runner.answer = ({ object }) => (object.name === "slow" ? undefined : done);
    const slow = change("Added", "slow", 22);
    second.subscription.change(change("Added", "a", 21));
    second.subscription.change(slow);
    await quiet(second.runner);
    second.subscription.change(change("Deleted", "a", 23));
    await quiet(second.runner);
    await second.clock.advance(1_000);
    second.runner.answer = () => done;
    const third = await second.restart(under({}));
    third.subscription.change(slow);
    await quiet(third.runner);
    await third.clock.advance(1_000);
    expect([third.runner.told, third.disk.begun.size]).toEqual([
      ["Added a@21", "Added slow@22", "Deleted a@23", "Added slow@22 #2 !"],
      0,
    ]);
  });

  it("takes nothing for initial once those have been listed, though it was of all at first, and never listed", async () => {
    const skipping = { initialEvents: "Skip" } as const;
    const first = await DispatchFixture.open(under(skipping));
    await first.clock.advance(1_000);
    const second = await first.restart({ ...inTeam, manifest: manifest({}, [trigger({ ...names, ...skipping })]) });
    await second.listed(20);
    await second.clock.advance(1_000);
    const third = await second.restart(under(skipping));
    await third.list(30, [change("Added", "a", 25)], "initial");
    await quiet(third.runner);
    expect(third.runner.told).toEqual(["Added a@25"]);
  });
});

describe("an edit before the first list is done", () => {
  it("has an object that was told, and is selected no more, told as unselected", async () => {
    const first = await DispatchFixture.open(under({}));
    const receiver = first.subscription.list("initial", undefined);
    receiver.item(change("Added", "a", 11));
    await quiet(first.runner);
    receiver.abort();
    await first.clock.advance(1_000);
    const second = await first.restart(narrowed);
    await second.list(20, [], "initial");
    await quiet(second.runner);
    expect(second.runner.deliveries.map(({ type, flags }) => [type, flags.reason])).toEqual([
      ["Added", undefined],
      ["Deleted", "unselected"],
    ]);
  });
});

describe("a state that is told again, since nothing proves that its events have ended", () => {
  /** A store without room for events, so that checkpoints wait while an earlier event runs. */
  class CrampedStore extends MemoryStore {
    constructor(disk: MemoryDisk) {
      super(disk, { spillLimit: 0, holdsQueues: false });
    }
  }

  it("is not its own previous object", async () => {
    const disk = new MemoryDisk();
    const grows = [{ name: "grows", expression: "oldObject == null || object.spec.size > oldObject.spec.size" }];
    const options = (over: Partial<Trigger>) => ({
      ...under({ ...over, matchConditions: grows }),
      disk,
      store: new CrampedStore(disk),
      usesOldObject: true,
    });
    const sized = (type: "Added" | "Modified", name: string, rv: number) =>
      change(type, name, rv, { spec: { size: 1 } });
    const labelled = { labelSelector: "lot!=0" };
    const first = await (await DispatchFixture.open(options({}))).listed();
    const second = await first.restart(options(labelled));
    second.runner.answer = ({ object }) => (object.name === "slow" ? undefined : done);
    await second.list(20, [sized("Added", "a", 11), sized("Added", "slow", 12)]);
    await quiet(second.runner);
    second.subscription.change(sized("Modified", "a", 21));
    await quiet(second.runner);
    await second.clock.advance(10_000);
    const third = await second.restart(options(labelled));
    third.runner.answer = () => done;
    await third.list(30, [sized("Added", "a", 21), sized("Added", "slow", 12)]);
    await quiet(third.runner);
    const told = third.runner.deliveries.slice(2);
    expect(told.map(({ type, object, oldBody }) => [type, object.name, oldBody])).toEqual([
      ["Added", "slow", undefined],
      ["Modified", "a", undefined],
    ]);
  });
});

describe("a key whose object an edit lets go", () => {
  /** A store whose commits outlive the process only after a sync, as with Secrets. */
  class LateStore extends MemoryStore {
    private readonly lasting: MemoryDisk;

    constructor(lasting: MemoryDisk) {
      super(copyOf(lasting));
      this.lasting = lasting;
    }

    override async sync(): Promise<void> {
      Object.assign(this.lasting, copyOf(this.disk));
    }
  }

  const copyOf = (disk: MemoryDisk) => Object.assign(new MemoryDisk(), structuredClone({ ...disk }));

  it("runs again where the edit is undone after a kill, though the writes before that are lost", async () => {
    const disk = new MemoryDisk();
    const stored = () => {
      disk.end = disk.end === "new" ? "new" : "power-loss";
      return { store: new LateStore(disk) };
    };
    const first = await open({ manifest: reconciler(), ...stored() });
    first.subscription.change(change("Added", "shop", 11));
    await first.clock.advance(1_000);
    await first.store.sync();
    disk.end = "killed";
    const labelSelector = "lot!=0";
    const narrow = manifest({ mode: "Reconcile" }, [trigger({ labelSelector }), byOwner]);
    const edited = { manifest: narrow, selection: labelSelector };
    const second = await withPods(await first.restart({ ...edited, ...stored() }), false);
    await second.list(20, []);
    await second.clock.advance(100);
    const third = await withPods(await second.restart({ manifest: reconciler(), ...stored() }), false);
    await third.list(21, [change("Added", "shop", 11)]);
    await third.clock.advance(1_000);
    expect(runs(third).map((run) => run.split(" ")[0])).toEqual(["shop@11", "shop@gone", "shop@11"]);
  });
});
