import fc from "fast-check";
import { expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import { Members } from "../../runtime/informer/fanout/members.ts";
import type { AskedField, PassedCounter, SkipRule } from "../../runtime/informer/fanout/subscriber.ts";
import { type Change, objectKey } from "../../runtime/informer/scan/change.ts";
import type { ChangeType } from "../../runtime/manifest/function.ts";
import { change } from "../engine/fixture.ts";
import { RecordingSubscriber } from "./recording-subscriber.ts";

/** The subscribers that know an object, by its key, and the field whose values they select. */
class Knowing implements AskedField {
  readonly byKey = new Map<string, Set<object>>();

  read({ body }: Change): string | undefined {
    return JSON.parse(String(body)).spec.color;
  }

  knowing({ meta }: Change): Iterable<object> {
    return this.byKey.get(objectKey(meta)) ?? [];
  }
}

/** A subscriber of objects of one color, and of objects that it has received in that color before. */
class Asking extends RecordingSubscriber {
  readonly passed: Record<ChangeType, number> = { Added: 0, Modified: 0, Deleted: 0 };
  /** The last skipped change that it has taken from the counts. */
  lastPassed: string | undefined;
  /** True if it was notified of a skipped change since it last took the counts. */
  isDue = false;
  readonly skipRule: SkipRule | undefined;
  private tally: PassedCounter | undefined;

  private readonly asked: { readonly color: string; readonly knowing: Knowing };

  /** @param standsBy whether changes may pass it without a call */
  constructor(id: string, color: string, knowing: Knowing, standsBy: boolean) {
    super("1", id);
    this.asked = { color, knowing };
    if (standsBy) this.skipRule = { field: knowing, value: color, token: this };
  }

  passedBy(tally: PassedCounter): void {
    this.takeUp();
    this.tally = tally;
  }

  passes(): void {
    expect(this.isDue).toBe(false);
    this.isDue = true;
  }

  takeUp(): void {
    const passed = this.tally?.take();
    this.isDue = false;
    if (!passed) return;
    for (const type of ["Added", "Modified", "Deleted"] as const) this.passed[type] += passed.counts[type];
    this.lastPassed = passed.last.meta.resourceVersion;
  }

  override change(given: Change): void {
    const { color, knowing } = this.asked;
    const key = objectKey(given.meta);
    const knows = knowing.byKey.get(key) ?? new Set();
    const has = knowing.read(given);
    if (has !== undefined && has !== color && !knows.has(this)) {
      this.takeUp();
      this.passed[given.type]++;
      this.lastPassed = given.meta.resourceVersion;
      return;
    }
    this.takeUp();
    super.change(given);
    if (given.type === "Deleted") knows.delete(this);
    else if (has === color) knowing.byKey.set(key, knows.add(this));
  }
}

const others = ["take", "leave", "move", "join", "join ahead", "reconnect"] as const;

type Step =
  | { readonly type: ChangeType; readonly name: string; readonly color: string | undefined }
  | { readonly type: (typeof others)[number]; readonly which: number };

const colors = ["red", "green", "blue", "blue"];
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        type: fc.constantFrom<ChangeType>("Added", "Modified", "Deleted"),
        name: fc.constantFrom("a", "b", "c"),
        color: fc.constantFrom("red", "green", "blue", undefined),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constantFrom(...others),
        which: fc.nat(colors.length - 1),
      }),
    },
  ),
  { maxLength: 40 },
);

/** Returns what subscribers receive, and what skips them, during these steps of a stream. */
function lives(life: readonly Step[], standsBy: boolean) {
  const members = new Members();
  // Stands for two dispatchers, each with its own known objects.
  const knowing = [new Knowing(), new Knowing()] as const;
  const all = colors.map(
    (color, index) => new Asking(`${color}-${index}`, color, knowing[(index % 2) as 0 | 1], standsBy),
  );
  const there = new Set<Asking>();
  const seen: unknown[] = [];
  const past: Change[] = [];
  let rv = 1;
  const at = () => resourceVersion(String(rv));
  /** Adds it as a member that already has so many of the coming changes. */
  const join = (one: Asking, ahead = 0) => {
    if (there.has(one)) return;
    there.add(one);
    members.join({ subscriber: one, at: resourceVersion(String(rv + ahead)) }, true);
  };
  for (const [index, one] of all.entries()) join(one, index === 3 ? 2 : 0);
  members.cover(at());
  for (const step of life) {
    if ("name" in step) {
      const written = change(step.type, step.name, ++rv, { spec: { color: step.color } });
      past.push(written);
      members.change(written);
      continue;
    }
    const one = all[step.which] as Asking;
    if (step.type === "take") one.takeUp();
    else if (step.type === "join") join(one);
    else if (step.type === "join ahead") join(one, 2);
    else if (step.type === "leave") {
      there.delete(one);
      members.leave(one);
    } else if (step.type === "move") {
      there.delete(one);
      members.moveOut(at(), ({ subscriber }) => subscriber === one);
    } else {
      // The next connection starts at an earlier position, and repeats what every member has.
      members.uncover(at());
      members.cover(resourceVersion(String(Math.max(1, rv - 2))));
      for (const each of past.slice(-2)) members.change(each);
    }
    seen.push(all.map(({ log }) => log.length));
  }
  for (const one of all) one.takeUp();
  return { seen, all: all.map(({ log, passed, lastPassed }) => ({ log, passed, lastPassed })) };
}

it("changes pass bystanders by as they pass those who are told of each: the same is told, counted and last", () => {
  fc.assert(
    fc.property(steps, (life) => {
      expect(lives(life, true)).toEqual(lives(life, false));
    }),
    { numRuns: 500 },
  );
});

it("a bystander is called for what it asks for alone, and once for the first of those that pass it", () => {
  const members = new Members();
  const knowing = new Knowing();
  let calls = 0;
  class Counted extends Asking {
    override change(given: Change): void {
      calls++;
      super.change(given);
    }
  }
  const all = Array.from({ length: 100 }, (_, index) => new Counted(`s${index}`, `color-${index}`, knowing, true));
  for (const subscriber of all) members.join({ subscriber, at: resourceVersion("1") }, true);
  members.cover(resourceVersion("1"));
  members.change(change("Added", "first", 2, { spec: { color: "color-0" } }));
  calls = 0;
  for (let rv = 3; rv < 1003; rv++)
    members.change(change("Added", `n${rv}`, rv, { spec: { color: `color-${rv % 100}` } }));
  expect(calls).toBe(1000);
  for (const one of all) {
    // No change has skipped the last receiver.
    expect(one.isDue).toBe(one !== all[2]);
    one.takeUp();
    expect(one.passed.Added).toBe(one === all[0] ? 990 : 991);
  }
});

it("what passes one that has ended its tally, or has left, is none of its own", () => {
  const members = new Members();
  const tallies: PassedCounter[] = [];
  class Ending extends Asking {
    override passedBy(tally: PassedCounter): void {
      tallies.push(tally);
    }
  }
  const one = new Ending("one", "red", new Knowing(), true);
  members.join({ subscriber: one, at: resourceVersion("1") }, true);
  members.cover(resourceVersion("1"));
  const pass = (rv: number) => members.change(change("Added", `n${rv}`, rv, { spec: { color: "blue" } }));
  for (const rv of [2, 3, 4]) pass(rv);
  tallies[0]?.end();
  pass(5);
  const passed = tallies[0]?.take();
  expect([passed?.counts.Added, passed?.last.meta.resourceVersion]).toEqual([2, "4"]);
  expect(tallies[0]?.take()).toBeUndefined();
});

/** Two subscribers that changes may skip: one wants red objects, the other blue ones. */
function standingBy() {
  const members = new Members();
  const knowing = new Knowing();
  const [red, blue] = [new Asking("red", "red", knowing, true), new Asking("blue", "blue", knowing, true)];
  for (const subscriber of [red, blue]) members.join({ subscriber, at: resourceVersion("1") }, true);
  members.cover(resourceVersion("1"));
  let rv = 1;
  const tell = (color: string) => members.change(change("Added", `n${++rv}`, rv, { spec: { color } }));
  tell("green");
  return { members, red, blue, tell };
}

it("a stream waits for those whom it has told something, and for no bystander that is congested by others", async () => {
  const { members, blue, tell } = standingBy();
  expect(members.untilFree()).toBeUndefined();
  const { promise, resolve } = Promise.withResolvers<void>();
  blue.congested = promise;
  tell("red");
  expect(members.untilFree()).toBeUndefined();
  tell("blue");
  const congested = members.untilFree();
  expect(congested).toBeInstanceOf(Promise);
  // It is asked again until it is free.
  expect(members.untilFree()).toBeInstanceOf(Promise);
  resolve();
  await congested;
  blue.congested = undefined;
  expect(members.untilFree()).toBeUndefined();
  blue.congested = promise;
  expect(members.untilFree()).toBeUndefined();
});

it.each([false, true])("a stream waits for no bystander that has left; after its connection has ended: %s", (ends) => {
  const { members, red, tell } = standingBy();
  red.congested = Promise.resolve();
  tell("red");
  expect(members.untilFree()).toBeInstanceOf(Promise);
  if (ends) members.uncover(resourceVersion("3"));
  members.leave(red);
  expect(members.untilFree()).toBeUndefined();
});

it("a stream that waits for one asks all, and waits for whoever is behind", async () => {
  const { members, red, blue, tell } = standingBy();
  expect(members.untilFree()).toBeUndefined();
  const { promise, resolve } = Promise.withResolvers<void>();
  red.congested = Promise.resolve();
  blue.congested = promise;
  tell("red");
  let isOver = false;
  const over = members.untilFree()?.then(() => {
    isOver = true;
  });
  await red.congested;
  expect(isOver).toBe(false);
  resolve();
  await over;
  expect(isOver).toBe(true);
});

it("a stream waits for one that begins to stand by with the change that fills it", () => {
  const { members, red } = standingBy();
  red.congested = Promise.resolve();
  expect(members.untilFree()).toBeInstanceOf(Promise);
});
