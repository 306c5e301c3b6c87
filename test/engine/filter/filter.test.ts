import { describe, expect, it } from "vitest";
import { Filter, type FilterRules, type Verdict } from "../../../runtime/engine/filter/filter.ts";
import type { ChangeType } from "../../../runtime/manifest/function.ts";

const rules = (over: Partial<FilterRules> = {}): FilterRules => ({
  events: ["Added", "Modified", "Deleted"],
  changedFields: [],
  matchConditions: [],
  lastBody: "Full",
  ...over,
});

const when = (...expressions: string[]): Partial<FilterRules> => ({
  matchConditions: expressions.map((expression, index) => ({ name: `c${index}`, expression })),
});

const json = (object: unknown) => Buffer.from(JSON.stringify(object));
const unknown = { hash: undefined, matched: undefined, possiblyOutdated: false };

function judge(over: Partial<FilterRules>, object: unknown, type: ChangeType = "Added", old?: unknown) {
  return new Filter(rules(over)).judge(type, json(object), unknown, old === undefined ? undefined : json(old));
}

/** Evaluates a deletion that a list found. */
function judgeDeletion(filter: Filter, ...of: Parameters<Filter["deletionPieces"]>): Verdict {
  const pieces = filter.deletionPieces(...of);
  for (;;) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}

describe("filters", () => {
  it("only the types a trigger names are delivered, and no body is parsed for that", () => {
    const filter = new Filter(rules({ events: ["Deleted"] }));
    const notJson = Buffer.from("{");
    expect(filter.judge("Added", notJson, unknown, undefined).deliver).toBe(false);
    expect(filter.judge("Deleted", notJson, unknown, undefined).deliver).toBe(true);
  });

  it.each([
    "int(object.text) == 1",
    "double(object.text) == 1.0",
    "bool(object.text)",
    "duration(object.text) > duration('1s')",
    "timestamp(object.text) > timestamp('2024-01-01T00:00:00Z')",
    "{'a': true}[object.text]",
    "object.text.matches(object.text)",
    "object.text.charAt(99) == ''",
    "object.text + 1 == 2",
    "object.text.name == 1",
    "ip(object.text) == ip('10.0.0.1')",
    "cidr(object.text) == cidr('10.0.0.0/8')",
    "quantity(object.text).isInteger()",
    "semver(object.text).major() == 1",
    "url(object.text).getHost() == ''",
    "object.text",
  ])("a condition without a value says so without a text of the object, which may be a Secret's: %s", (expression) => {
    const { heldBack } = judge(when(expression), { text: "(hunter2" });
    expect(heldBack).toMatchObject({ type: "conditionError", condition: "c0" });
    expect(JSON.stringify(heldBack)).not.toContain("hunter2");
  });

  it("a Modified is delivered only if one of the changed fields differs, whatever the order of keys", () => {
    const filter = new Filter(rules({ changedFields: [["data"], ["metadata", "labels"]] }));
    const seen = (object: unknown) => filter.judge("Added", json(object), unknown, undefined).hash;
    const before = { hash: seen({ data: { a: 1, b: [{ x: 1, y: 2 }] } }), matched: true, possiblyOutdated: false };
    const modified = (object: unknown) => filter.judge("Modified", json(object), before, undefined).deliver;
    expect(modified({ status: 9, data: { b: [{ y: 2, x: 1 }], a: 1 } })).toBe(false);
    expect(modified({ data: { a: 2, b: [{ x: 1, y: 2 }] } })).toBe(true);
    expect(modified({ data: { a: 1, b: [{ x: 1, y: 2 }] }, metadata: { labels: {} } })).toBe(true);
    expect(modified({ data: null })).toBe(true);
    expect(seen({ data: null })).not.toBe(seen({}));
  });

  it("an integer beyond those that JavaScript has differs from its neighbour", () => {
    const filter = new Filter(rules({ changedFields: [["spec"]] }));
    const of = (generation: string) => Buffer.from(`{"spec":{"n":${generation},"ratio":0.5}}`);
    const { hash } = filter.judge("Added", of("9007199254740992"), unknown, undefined);
    const before = { hash, matched: true, possiblyOutdated: false };
    expect(filter.judge("Modified", of("9007199254740993"), before, undefined).deliver).toBe(true);
    expect(filter.judge("Modified", of("9007199254740992"), before, undefined).deliver).toBe(false);
  });

  it("an object that nests deeper than a stack is told of at any change, and only then", () => {
    const filter = new Filter(rules({ changedFields: [["spec"]], ...when("object.spec != [1]") }));
    const nested = (rest: string) => Buffer.from(`{"spec":${"[".repeat(9_900)}${"]".repeat(9_900)},"rest":${rest}}`);
    for (const [rest, other] of [
      ["1", "2"],
      ["1234567890123456789", "1234567890123456788"],
    ] as const) {
      const { hash } = filter.judge("Added", nested(rest), unknown, undefined);
      const before = { hash, matched: true, possiblyOutdated: false };
      expect(filter.judge("Modified", nested(rest), before, undefined).deliver).toBe(false);
      expect(filter.judge("Modified", nested(other), before, undefined).deliver).toBe(true);
    }
  });

  it("a condition that yields no bool counts as not holding, and is told", () => {
    const told: string[] = [];
    const filter = new Filter(rules(when("object.metadata.name")), ({ message }) => told.push(message));
    expect(filter.judge("Added", json({ metadata: { name: "true" } }), unknown, undefined).deliver).toBe(false);
    expect(told).toEqual(["yields string, not bool"]);
  });

  it("all conditions must hold", () => {
    expect(judge(when("object.a == 1", "object.b == 2"), { a: 1, b: 2 }).deliver).toBe(true);
    expect(judge(when("object.a == 1", "object.b == 2"), { a: 1, b: 3 }).deliver).toBe(false);
  });

  it("whole numbers are ints, others doubles", () => {
    expect(judge(when("object.spec.replicas + 1 > 3"), { spec: { replicas: 3 } }).deliver).toBe(true);
    expect(judge(when("type(object.spec.replicas) == int"), { spec: { replicas: 3 } }).deliver).toBe(true);
    expect(judge(when("object.ratio < 0.5 && type(object.ratio) == double"), { ratio: 0.25 }).deliver).toBe(true);
  });

  it("the previous object is null for an Added, and there for the others", () => {
    const grew = when("oldObject != null && object.n > oldObject.n");
    expect(judge(grew, { n: 2 }, "Modified", { n: 1 }).deliver).toBe(true);
    expect(judge(grew, { n: 1 }, "Modified", { n: 2 }).deliver).toBe(false);
    expect(judge(grew, { n: 2 }, "Added", { n: 1 }).deliver).toBe(false);
  });

  it("a condition that cannot be evaluated counts as not holding, and is told", () => {
    const told: string[] = [];
    const filter = new Filter(rules(when("object.status.phase == 'Running'")), (error) => told.push(error.condition));
    expect(filter.judge("Added", json({}), unknown, undefined).deliver).toBe(false);
    expect(told).toEqual(["c0"]);
  });

  it("a false condition decides, even if another cannot be evaluated", () => {
    const told: string[] = [];
    const filter = new Filter(rules(when("object.missing.x == 1", "false")), (error) => told.push(error.condition));
    expect(filter.judge("Added", json({}), unknown, undefined).deliver).toBe(false);
    expect(told).toEqual([]);
  });

  it("a deletion of which only the metadata is known goes by the last answer of the conditions", () => {
    const filter = new Filter(rules({ lastBody: "Metadata", events: ["Deleted"], ...when("size(object.data) > 0") }));
    const added = filter.judge("Added", json({ data: { a: 1 } }), unknown, undefined);
    expect(added).toMatchObject({ deliver: false, matched: true });
    for (const matched of [true, false]) {
      const before = { hash: "", matched, possiblyOutdated: false };
      expect(judgeDeletion(filter, json({ metadata: {} }), before).deliver).toBe(matched);
    }
  });

  it("a deletion that was found is judged by the last body, and by the conditions' last answer where that is gone", () => {
    const filter = new Filter(rules(when("object.spec.sync == 'yes'")));
    const matched = { hash: "", matched: true, possiblyOutdated: false };
    const unmatched = { ...matched, matched: false };
    expect(judgeDeletion(filter, json({ spec: { sync: "no" } }), matched).deliver).toBe(false);
    expect(judgeDeletion(filter, json({ spec: { sync: "yes" } }), unmatched).deliver).toBe(true);
    expect(judgeDeletion(filter, undefined, matched).deliver).toBe(true);
    expect(judgeDeletion(filter, undefined, unmatched).deliver).toBe(false);
    expect(judgeDeletion(filter, undefined, unknown).deliver).toBe(true);
  });

  it("a condition that compares with an object that is not kept holds, and the others decide", () => {
    const filter = new Filter(rules(when("object.spec.n != oldObject.spec.n", "object.spec.n > 1")));
    const before = { hash: "", matched: false, possiblyOutdated: false };
    const told = (n: number, old?: unknown) =>
      filter.judge("Modified", json({ spec: { n } }), before, old === undefined ? undefined : json(old)).deliver;
    expect([told(2), told(1)]).toEqual([true, false]);
    expect([told(2, { spec: { n: 2 } }), told(2, { spec: { n: 3 } })]).toEqual([false, true]);
    // In the form that `lastBody: Metadata` keeps.
    expect([told(2, { metadata: { name: "a" } }), told(1, { metadata: { name: "a" } })]).toEqual([true, false]);
  });

  it("a condition that compares with kept metadata is judged by it", () => {
    const filter = new Filter(rules(when("object.metadata.labels != oldObject.metadata.labels")));
    const before = { hash: "", matched: false, possiblyOutdated: false };
    const told = (labels: object, old: object) =>
      filter.judge("Modified", json({ metadata: { labels }, spec: 1 }), before, json({ metadata: { labels: old } }));
    expect([told({ a: "1" }, { a: "1" }).deliver, told({ a: "1" }, { a: "2" }).deliver]).toEqual([false, true]);
  });

  it("an expression that is no CEL is refused with its place in it", () => {
    expect(() => new Filter(rules(when("object.x ==")))).toThrow(/WF_FILTER_CONDITION_SYNTAX.*at character 12/);
    expect(() => new Filter(rules(when("true", "objekt.x == 1")))).toThrow(
      /WF_FILTER_CONDITION_TYPE matchConditions\[1\]\.expression.*objekt/,
    );
    expect(() => new Filter(rules(when("'yes'")))).toThrow(/yields string, not bool/);
  });
});
