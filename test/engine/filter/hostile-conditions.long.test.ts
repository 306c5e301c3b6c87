import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expressionLimit, Meter } from "../../../runtime/cel/meter.ts";
import { Expression } from "../../../runtime/engine/filter/expression.ts";
import { Filter, type FilterRules } from "../../../runtime/engine/filter/filter.ts";

/** An object of the maximum size in etcd, made to be expensive to evaluate. */
function hostileObject(): object {
  const count = 6_000;
  const many = <T>(item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index));
  let deep: unknown = 1;
  for (let level = 0; level < 3_000; level++) deep = level % 2 ? [deep] : { k: deep };
  return {
    long: "a".repeat(300_000),
    part: `b${"a".repeat(50_000)}`,
    ab: "abba".repeat(25_000),
    emoji: "😀".repeat(20_000),
    numbers: many((index) => index),
    names: many((index) => `item-${index}`),
    same: many((index) => `item-${index}`),
    map: Object.fromEntries(many((index) => [`key-${index}`, `value-${index}`])),
    patterns: many((index) => `(a|b){${index % 900}}x`),
    classes: many((index) => `${"[".repeat(900)}${index}`).slice(0, 300),
    refused: many((index) => `${"[".repeat(900)}]a{9}{1000}{9}${index}`).slice(0, 300),
    zones: many((index) => `Etc/GMT+${index % 12}`),
    addresses: many((index) => `2001:db8::${index.toString(16)}`),
    deep,
    clauses: "%s".repeat(200_000),
    percents: "%".repeat(300_000),
    quotes: '"'.repeat(400_000),
  };
}

/** Conditions that would run practically forever without a limit. */
const expensive = [
  "object.long.matches('^(a+)+$') || object.long.matches('(x+x+)+y')",
  "object.ab.matches('[ab]*a[ab]{20}c')",
  "object.ab.findAll('a.*c|b').size() > 0",
  "object.patterns.all(p, object.ab.matches(p) || true)",
  "object.classes.all(p, 'a'.matches(p) || true)",
  "object.refused.all(p, 'a'.matches(p) || true)",
  "object.numbers.all(a, object.numbers.all(b, object.numbers.all(c, a + b + c > -1)))",
  "object.numbers.map(a, object.numbers.map(b, a * b)).size() > 0",
  "object.numbers.filter(a, object.numbers.exists(b, b == -a - 1)).size() == 0",
  "object.names.all(n, n in object.same)",
  "object.numbers.all(n, object.names == object.same)",
  "object.names.all(n, object.map == object.map && object.map.size() > 0)",
  "object.map.all(k, v, object.map.exists(l, w, l == v) || true)",
  "object.map.transformMap(k, v, object.names).transformList(k, v, v + v).size() > 0",
  "sets.equivalent(object.names, object.same)",
  "object.long.contains(object.part) || object.long.lastIndexOf(object.part) < 0",
  "object.names.map(n, n + object.long).size() > 0",
  "object.long.replace('a', object.long) != ''",
  "object.names.all(n, object.long.split('a').join(',') != '')",
  "object.names.all(n, object.emoji.size() > 0 && object.emoji.charAt(9) != '')",
  "object.names.all(n, '%s %s'.format([object.names, object.map]) != '')",
  "object.names.all(n, object.missing == n || true)",
  "object.names.all(n, timestamp('2024-01-01T00:00:00Z').getHours(object.zones[3]) < 24 && duration('1h') > duration('1s'))",
  "object.names.all(n, object.addresses.all(a, ip(a).isGlobalUnicast() && !cidr('::1/128').containsIP(a)))",
  "object.names.all(n, quantity('1.5Gi').isGreaterThan(quantity('1M')) && semver('1.2.3').major() == 1)",
  "object.names.all(n, !format.qualifiedName().validate(n).hasValue() && isURL('https://x/' + n))",
  "object.names.all(n, object.names.indexOf(n) >= 0 && object.names.isSorted() == false)",
  "cel.bind(a, object.long + object.long, cel.bind(b, a + a, cel.bind(c, b + b, cel.bind(d, c + c, d == d + ''))))",
  "object.deep == object.deep || object.deep != null",
];

/** Conditions that are cheap once and are repeated 60 times, so that any uncharged time adds up. */
const underpaid = [
  "object.clauses.format([1]) == ''",
  "object.percents.format([]) == ''",
  "strings.quote(object.quotes) == ''",
  "timestamp('2024-01-01T00:00:00Z').getHours(object.long) == 1",
];

const rulesOf = (expressions: readonly string[]): FilterRules => ({
  events: ["Added", "Modified", "Deleted"],
  changedFields: [],
  lastBody: "Full",
  matchConditions: expressions.map((expression, index) => ({ name: `c${index}`, expression })),
});

const nothing = { hash: undefined, matched: undefined, possiblyOutdated: false };

/** CPU time of this process in milliseconds, independent of other processes. */
function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The minimum of a few runs: the first warms up the code, and another may contain a garbage collection. */
const leastMs = (run: () => void): number => Math.min(...Array.from({ length: 4 }, () => cpuMs(run)));

const nested = (levels: number, json: string): string => `${'{"d":'.repeat(levels)}${json}${"}".repeat(levels)}`;

describe("hostile conditions", () => {
  const object = JSON.parse(JSON.stringify(hostileObject()));

  it.each(expensive)("%s holds the parent up for less than 50 ms", (expression) => {
    const compiled = new Expression(expression);
    expect(leastMs(() => compiled.evaluate(new Meter(expressionLimit), object, () => null))).toBeLessThan(50);
  });

  it.each(underpaid)("%s, 60 times in each of 64 conditions, holds it up for less than 100 ms", (expression) => {
    const body = Buffer.from(JSON.stringify(object));
    const often = `${`(${expression}) || `.repeat(60)}true`;
    const filter = new Filter(rulesOf(Array(64).fill(often)));
    const parsing = leastMs(() => JSON.parse(body.toString()));
    expect(leastMs(() => filter.judge("Added", body, nothing, undefined)) - parsing).toBeLessThan(100);
  });

  it("as many as a trigger may have, of every kind, over one event, hold it up hardly longer than one", () => {
    const body = Buffer.from(JSON.stringify(object));
    const all = Array.from({ length: 64 }, (_, index) => `(${expensive[index % expensive.length]}) || true`);
    const filter = new Filter(rulesOf(all));
    const parsing = leastMs(() => JSON.parse(body.toString()));
    expect(leastMs(() => filter.judge("Added", body, nothing, undefined)) - parsing).toBeLessThan(100);
  });

  it.each([
    [
      "many keys",
      JSON.stringify({
        data: Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${1e6 + index}`, 1])),
      }),
      (index: number) =>
        Array.from({ length: 20 }, (_, each) => `has(object.data.k${2e6 + index * 20 + each})`).join(" || "),
    ],
    ["many levels", nested(90, `"${"a".repeat(1e6)}"`), (index: number) => `has(object${".d".repeat(90)}.n${index})`],
  ])("fields of an object of %s are found in less than four times the time of parsing it", (_, json, expression) => {
    const body = Buffer.from(json);
    const filter = new Filter(rulesOf(Array.from({ length: 64 }, (_, index) => expression(index))));
    const parsing = leastMs(() => JSON.parse(body.toString()));
    expect(leastMs(() => filter.judge("Added", body, nothing, undefined))).toBeLessThan(4 * parsing + 5);
  });

  it("an object that makes a condition too expensive is delivered, and its other conditions decide", () => {
    const slow = "object.names.all(a, object.names.all(b, a != b || b == a))";
    const body = Buffer.from(JSON.stringify(object));
    const told: [string, boolean][] = [];
    const judge = (...expressions: string[]) =>
      new Filter(rulesOf(expressions), ({ condition, isUncertain: doubtful }) =>
        told.push([condition, doubtful]),
      ).judge("Added", body, nothing, undefined);
    expect(judge(slow)).toMatchObject({ deliver: true, matched: true });
    expect(judge(slow, "false").deliver).toBe(false);
    expect(judge(slow, "object.missing == 1").deliver).toBe(false);
    expect(told).toEqual([
      ["c0", true],
      ["c0", true],
      ["c1", false],
    ]);
  });

  it("no expression that compiles costs time out of proportion to what is paid", () => {
    const list = fc.constantFrom("object.numbers", "object.names", "object.map", "[1, 2]", "object.deep");
    const { body } = fc.letrec<{ body: string }>((tie) => ({
      body: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(
          "x == x",
          "string(x) != ''",
          "x in object.names",
          "object.long == object.part",
          "object.none == x",
        ),
        fc.tuple(tie("body"), tie("body")).map(([a, b]) => `(${a} || ${b})`),
        fc.tuple(tie("body"), tie("body")).map(([a, b]) => `(${a} && ${b})`),
        fc.tuple(list, tie("body")).map(([over, inner]) => `${over}.exists(x, ${inner})`),
        fc.tuple(list, tie("body")).map(([over, inner]) => `${over}.map(x, ${inner}).size() > 0`),
      ),
    }));
    fc.assert(
      fc.property(list, body, (over, inner) => {
        const compiled = new Expression(`${over}.all(x, ${inner})`);
        expect(leastMs(() => compiled.evaluate(new Meter(expressionLimit), object, () => null))).toBeLessThan(100);
      }),
      { numRuns: 40 },
    );
  });
});

describe("hostile expressions", () => {
  const filled = (part: string, separator: string): string =>
    Array(Math.floor(4096 / (part.length + separator.length)))
      .fill(part)
      .join(separator);

  it.each([
    ["100,000 brackets", "(".repeat(100_000)],
    ["4,000 brackets", `${"(".repeat(2_000)}true${")".repeat(2_000)}`],
    ["4,000 signs", `${"!".repeat(4_000)}true`],
    ["signs apart", `${"- ".repeat(2_000)}1 == 1`],
    ["lists in lists", `${"[".repeat(2_000)}${"]".repeat(2_000)} == []`],
    ["maps that double their type", `[1]${".map(a, {a: a})".repeat(200)} == []`],
    ["macros in macros", `${"object.all(x, ".repeat(250)}true${")".repeat(250)}`],
    ["a long chain", filled("object.a", " && ")],
    ["fields of fields", `object${".a".repeat(2_000)} == 1`],
    ["large patterns", filled("'a'.matches('(a|b){400}')", " && ")],
    ["classes without an end", filled(`'a'.matches('${"[".repeat(950)}')`, " && ")],
    ["too many characters", `true${" ".repeat(4_093)}`],
  ])("%s are refused before they hold the parent up", (_, expression) => {
    const ms = leastMs(() => expect(() => new Expression(expression)).toThrow(Error));
    expect(ms).toBeLessThan(50);
  });
});
