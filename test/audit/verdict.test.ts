import { describe, expect, test } from "vitest";
import { type Edit, wantedBy } from "./edits.ts";
import type { Delivery, Fact } from "./ledger.ts";
import { judge } from "./verdict.ts";

let written = 0;
const fact = (uid: string, type: Fact["type"], resourceVersion: number, name = "a"): Fact => ({
  uid,
  name,
  type,
  resourceVersion,
});
const delivered = (of: Fact, more: Partial<Delivery> = {}): Delivery => ({
  ...of,
  id: `${of.uid}/${of.resourceVersion}/${of.type}`,
  flagged: false,
  synthetic: false,
  writtenAt: written++,
  ...more,
});

const added = fact("u1", "Added", 10);
const changed = fact("u1", "Modified", 12);
const deleted = fact("u1", "Deleted", 15);
const life = [added, changed, deleted];
const faults = (verdict: ReturnType<typeof judge>) => {
  const { missed, unflagged, disordered, invented } = verdict;
  return {
    missed: missed.length,
    unflagged: unflagged.length,
    disordered: disordered.length,
    invented: invented.length,
  };
};
const none = { missed: 0, unflagged: 0, disordered: 0, invented: 0 };

describe("with the history whole", () => {
  test("a life delivered once and in order is without fault", () => {
    expect(
      faults(
        judge(
          life,
          life.map((each) => delivered(each)),
        ),
      ),
    ).toEqual(none);
  });

  test("every change that was not delivered is missed", () => {
    expect(faults(judge(life, [delivered(added)]))).toEqual({ ...none, missed: 2 });
  });

  test("a state delivered again must say so", () => {
    const again = [delivered(added), delivered(changed), delivered(changed), delivered(deleted)];
    expect(faults(judge(life, again))).toEqual({ ...none, unflagged: 1 });
    const flagged = again.map((each, index) => (index === 2 ? { ...each, flagged: true } : each));
    expect(faults(judge(life, flagged))).toEqual(none);
  });

  test("a state delivered again under another type is a duplicate all the same", () => {
    const again = [delivered(added), delivered({ ...added, type: "Modified" }), delivered(changed), delivered(deleted)];
    expect(faults(judge(life, again))).toEqual({ ...none, unflagged: 1 });
  });

  test("one repeat without its flag is forgiven to each process that was stopped amid writing it, and no more", () => {
    const before = [added, changed, deleted].map((each) => delivered(each));
    const from = written - 1;
    const [late, later] = [delivered(changed), delivered(added)];
    const wakings = [{ from, to: written - 1 }];
    expect(faults(judge(life, [...before, late], { wakings }))).toEqual(none);
    expect(judge(life, [...before, late], { wakings }).amidWriting).toBe(1);
    expect(faults(judge(life, [...before, late, later], { wakings }))).toEqual({ ...none, unflagged: 1 });
    expect(faults(judge(life, [...before, delivered(changed)], { wakings }))).toEqual({ ...none, unflagged: 1 });
  });

  test("a deletion happens once, whatever resourceVersion its event has", () => {
    const twice = [...life.map((each) => delivered(each)), delivered({ ...deleted, resourceVersion: 12 })];
    expect(faults(judge(life, twice))).toEqual({ ...none, unflagged: 1 });
  });

  test("an older state first delivered after a newer one is out of order", () => {
    expect(
      faults(
        judge(
          life,
          [changed, added, deleted].map((each) => delivered(each)),
        ),
      ),
    ).toEqual({
      ...none,
      disordered: 1,
    });
  });

  test("the end of an object comes before the beginning of the next of its name", () => {
    const next = fact("u2", "Added", 20);
    const swapped = [added, changed, next, deleted].map((each) => delivered(each));
    expect(faults(judge([...life, next], swapped))).toEqual({ ...none, disordered: 1 });
  });

  test("a delivery of what never happened is found", () => {
    const ghost = delivered(fact("u9", "Deleted", 11));
    expect(faults(judge([added], [delivered(added), ghost]))).toEqual({ ...none, invented: 1 });
  });
});

describe("with a gap in the history", () => {
  const gap = { gaps: [{ from: 10, to: 15 }] };

  test("of the changes within it only the last is required", () => {
    const facts = [added, changed, fact("u1", "Modified", 14)];
    const last = delivered(fact("u1", "Modified", 14), { synthetic: true });
    expect(faults(judge(facts, [delivered(added), last], gap))).toEqual(none);
    expect(faults(judge(facts, [delivered(added)], gap))).toEqual({ ...none, missed: 1 });
  });

  test("a deletion within it is required", () => {
    expect(faults(judge(life, [delivered(added)], gap))).toEqual({ ...none, missed: 1 });
    const unseen = delivered({ ...deleted, resourceVersion: 10 }, { synthetic: true });
    expect(faults(judge(life, [delivered(added), unseen], gap))).toEqual(none);
  });

  test("an object that came and went within it may stay unknown", () => {
    const brief = [fact("u2", "Added", 11, "b"), fact("u2", "Deleted", 13, "b")];
    expect(faults(judge([added, ...brief], [delivered(added)], gap))).toEqual(none);
  });

  test("an object that the handler met is never without its end", () => {
    const brief = [fact("u2", "Added", 11, "b"), fact("u2", "Deleted", 13, "b")];
    const met = [delivered(added), delivered(fact("u2", "Added", 11, "b"))];
    expect(faults(judge([added, ...brief], met, gap))).toEqual({ ...none, missed: 1 });
  });

  test("every change outside it is required", () => {
    const after = fact("u1", "Modified", 16);
    expect(faults(judge([added, after], [delivered(added)], gap))).toEqual({ ...none, missed: 1 });
  });
});

describe("with an edit of the manifest", () => {
  const [odd, even] = ["item-1", "item-2"];
  const [first, second] = [fact("u1", "Added", 10, odd), fact("u2", "Added", 11, even)];
  const both = [first, second].map((each) => delivered(each));
  /** An edit while nothing changes. Changes from 23 on are judged only by the new manifest. */
  const to = (wanted: Parameters<typeof wantedBy>[0], at = 20): Edit => ({
    from: at,
    to: at + 2,
    wanted: wantedBy(wanted),
  });
  const selectsOdd = { selects: (name: string) => name === odd };
  const released = delivered({ ...second, type: "Deleted" }, { id: "released", reason: "unselected", synthetic: true });
  const selected = delivered(second, { id: "selected", reason: "selected", synthetic: true });
  const later = [fact("u1", "Modified", 30, odd), fact("u2", "Modified", 31, even)];
  const [told, untold] = later.map((each) => delivered(each));
  const judged = (facts: Fact[], deliveries: (Delivery | undefined)[], ...edits: Edit[]) => {
    const verdict = judge(
      facts,
      deliveries.filter((each) => each !== undefined),
      { edits },
    );
    return { ...faults(verdict), unwanted: verdict.unwanted.length };
  };
  const fine = { ...none, unwanted: 0 };

  test("what it does not ask for need not be told, and must not be", () => {
    const facts = [first, second, ...later];
    const takesOdd = to({ takes: ({ name }) => name === odd });
    expect(judged(facts, [...both, told], takesOdd)).toEqual(fine);
    expect(judged(facts, [...both, told, untold], takesOdd)).toEqual({ ...fine, unwanted: 1 });
    expect(judged(facts, both, takesOdd)).toEqual({ ...fine, missed: 1 });
  });

  test("what happens while it is edited is judged by both manifests", () => {
    const amid = [fact("u1", "Modified", 21, odd), fact("u2", "Modified", 22, even)];
    const takesOdd = to({ takes: ({ name }) => name === odd });
    const [ofOdd, ofEven] = amid.map((each) => delivered(each));
    expect(judged([first, second, ...amid], [...both, ofOdd], takesOdd)).toEqual(fine);
    expect(judged([first, second, ...amid], [...both, ofOdd, ofEven], takesOdd)).toEqual(fine);
    expect(judged([first, second, ...amid], [...both, ofEven], takesOdd)).toEqual({ ...fine, missed: 1 });
  });

  test("what was refused is not told under a later manifest than the next", () => {
    const facts = [first, second, ...later];
    const back = [to({}, 40), to({}, 50)];
    const none = to({ takes: () => false });
    expect(judged(facts, [...both, untold], none, ...back)).toEqual(fine);
    expect(judged(facts, [...both, untold], none, to(none.wanted, 40), to({}, 50))).toEqual({ ...fine, unwanted: 1 });
  });

  test("what it lets go is told once as that, and what it selects again as that", () => {
    const edits = [to(selectsOdd), to({}, 40)];
    const facts = [first, second];
    expect(judged(facts, [...both, released, selected], ...edits)).toEqual(fine);
    expect(judged(facts, both, edits[0] as Edit)).toEqual({ ...fine, missed: 1 });
    expect(judged(facts, [...both, released], ...edits)).toEqual({ ...fine, missed: 1 });
    const again = { ...released, id: "again" };
    expect(judged(facts, [...both, released, again, selected], ...edits)).toEqual({ ...fine, unflagged: 1 });
    expect(judged(facts, [...both, released, selected, again], ...edits)).toEqual({ ...fine, invented: 1 });
    const twice = { ...selected, id: "twice" };
    expect(judged(facts, [...both, released, selected, twice], ...edits)).toEqual({ ...fine, unflagged: 1 });
  });

  test("what is selected for the first time says so", () => {
    const facts = [first, second, later[1] as Fact];
    const shown = delivered(later[1] as Fact, { reason: "selected", synthetic: true });
    const edits = [to(selectsOdd, 1), to({}, 40)];
    const [one] = both;
    expect(judged(facts, [one, shown], ...edits)).toEqual(fine);
    expect(judged(facts, [one, { ...shown, reason: "relist" }], ...edits)).toEqual({ ...fine, missed: 1, unwanted: 1 });
  });

  test("an id belongs to one state", () => {
    const [one, two] = both as [Delivery, Delivery];
    const borrowed = { ...two, id: one.id, flagged: true };
    expect(judged([first, second], [one, borrowed])).toEqual({ ...fine, missed: 1, unflagged: 1 });
  });
});
