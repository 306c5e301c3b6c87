import type { Dice } from "../laws/random.ts";
import type { Json } from "./objects.ts";

/** Rules that hold or not, compile or not, and cost little or too much, for the properties below. */
const rules = [
  "has(self.s) ? self.s.size() > 1 : true",
  "!has(self.n) || self.n >= 0",
  "self.l.all(x, x != '')",
  "self.l.exists_one(x, x.startsWith('a'))",
  "self.m.all(k, k.size() < 10)",
  "self.o.a == self.o.b",
  "!has(self.o) || has(self.o.a)",
  "self.nope == 1",
  "self.s == self.n",
  "oldSelf.s == self.s",
  "self.s.matches('^[a-z]+$')",
  "self.s.matches('[')",
  "self.l.all(x, self.l.all(y, x == y))",
  "self.l.map(x, self.l.filter(y, x + y != '')).size() > 0",
  "quantity(self.q).isLessThan(quantity('1Gi'))",
  "duration(self.d) < duration('1h')",
  "timestamp(self.t).getHours() < 12",
  "isURL(self.s) && url(self.s).getHost() == 'a'",
  "self.i == 'x' || self.i == 1",
  "type(self.i) == int",
  "self.s",
  "1 + 1 == 2",
  "",
  "cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
  "self.l.isSorted()",
  "self.l[0] == 'a'",
  "self.?s.orValue('x') != ''",
  "format.dns1123Label().validate(self.s).hasValue()",
];
const patterns = ["^[a-z]+$", "[", "^(a|b)*$", "\\d+"];
const formats = ["date-time", "byte", "ipv4", "uuid", "duration", "nope", "int32", "int64"];

/** A schema's field with one unusual setting. */
function twist(dice: Dice, schema: Json): Json {
  const twists: readonly (() => Json)[] = [
    () => ({ pattern: dice.pick(patterns) }),
    () => ({ format: dice.pick(formats) }),
    () => ({ enum: dice.pick<unknown[]>([["a", "b"], ["a", "a"], [1, 2], []]) }),
    () => ({ default: dice.pick<unknown>(["a", 1, null, {}, [], true]) }),
    () => ({ nullable: true }),
    () => ({ minimum: 1, maximum: dice.pick([0, 5]), exclusiveMinimum: dice.chance(0.5) }),
    () => ({ minLength: 2, maxLength: dice.pick([1, 4]) }),
    () => ({ multipleOf: dice.pick([2, 0, -1]) }),
    () => ({ "x-kubernetes-int-or-string": true }),
    () => ({ "x-kubernetes-preserve-unknown-fields": dice.chance(0.7) }),
    () => ({ "x-kubernetes-embedded-resource": true }),
    () => ({ "x-kubernetes-list-type": dice.pick(["set", "map", "atomic", "nope"]) }),
    () => ({ "x-kubernetes-list-map-keys": ["name"] }),
    () => ({ "x-kubernetes-map-type": dice.pick(["granular", "atomic", "x"]) }),
    () => ({
      "x-kubernetes-validations": [
        { rule: dice.pick(rules), ...dice.pick<Json>([{}, { message: "no" }, { message: "" }]) },
      ],
    }),
    () => ({ required: dice.pick<unknown[]>([["a"], ["nope"], ["a", "a"]]) }),
    () => ({ type: dice.pick(["string", "integer", "number", "boolean", "array", "object", "null", ""]) }),
    () => ({ allOf: [{ minLength: 1 }] }),
    () => ({ oneOf: [{ required: ["a"] }, { required: ["b"] }] }),
    () => ({ anyOf: [{ type: "string" }, { type: "integer" }] }),
    () => ({ not: { enum: ["x"] } }),
    () => ({ additionalProperties: dice.pick<unknown>([true, false, { type: "string" }]) }),
    () => ({ items: { type: "string" } }),
    () => ({ uniqueItems: true }),
    () => ({ $ref: "#/x" }),
    () => ({ title: "x", description: "y", externalDocs: { url: "z" }, example: { a: 1 } }),
    () => ({ maxItems: dice.pick([0, 3, -1]), minItems: 1 }),
    () => ({ maxProperties: dice.pick([0, 3]), minProperties: 1 }),
  ];
  return { ...schema, ...dice.pick(twists)() };
}

const text = { type: "string", maxLength: 30 };
const properties = (): Record<string, Json> => ({
  s: { ...text },
  n: { type: "integer", format: "int64" },
  l: { type: "array", maxItems: 10, items: { ...text } },
  m: { type: "object", maxProperties: 10, additionalProperties: { ...text } },
  o: { type: "object", properties: { a: { ...text }, b: { ...text } } },
  q: { ...text },
  d: { ...text },
  t: { type: "string", format: "date-time" },
  i: { "x-kubernetes-int-or-string": true },
});

/** A definition of a kind whose schema, and whose own fields, have some unusual settings. */
export function definition(dice: Dice, number: number): Json {
  const fields = properties();
  for (let count = dice.below(3); count >= 0; count--) {
    const name = dice.pick(Object.keys(fields));
    fields[name] = twist(dice, fields[name] ?? {});
  }
  const spec: Json = { type: "object", properties: fields };
  if (dice.chance(0.7)) spec["x-kubernetes-validations"] = [{ rule: dice.pick(rules) }];
  const schema = {
    type: "object",
    properties: { spec, status: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
  };
  const plural = `w${number}s`;
  const version: Json = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } };
  const names: Json = { plural, singular: `w${number}`, kind: `W${number}` };
  const made: Json = { group: "parity.example", scope: "Namespaced", names, versions: [version] };
  if (dice.chance(0.4)) {
    const changes: readonly (() => unknown)[] = [
      () => Object.assign(version, { subresources: { status: {} } }),
      () =>
        Object.assign(version, {
          subresources: {
            scale: { specReplicasPath: dice.pick([".spec.n", "spec.n", ".status.n"]), statusReplicasPath: ".status.n" },
          },
        }),
      () =>
        Object.assign(version, {
          additionalPrinterColumns: [
            {
              name: "A",
              type: dice.pick(["string", "nope", "date"]),
              jsonPath: dice.pick([".spec.s", "spec.s", ".spec[", ""]),
            },
          ],
        }),
      () =>
        Object.assign(version, { selectableFields: [{ jsonPath: dice.pick([".spec.s", ".spec.o", ".spec.nope"]) }] }),
      () => Object.assign(version, { name: dice.pick(["v1beta1", "V1", "1", ""]) }),
      () => Object.assign(version, { served: dice.chance(0.5), storage: dice.chance(0.5) }),
      () => Object.assign(version, { deprecated: true, deprecationWarning: dice.pick(["gone", "", "x".repeat(300)]) }),
      () =>
        Object.assign(names, { shortNames: dice.pick<unknown>([["w"], ["W"], ["w", "w"], "w"]), categories: ["all"] }),
      () => Object.assign(names, { kind: dice.pick(["w", "", "W W"]) }),
      () => Object.assign(names, { listKind: "Nope" }),
      () => Object.assign(made, { scope: dice.pick(["Cluster", "cluster", ""]) }),
      () => Object.assign(made, { group: dice.pick(["parity", "Parity.example", ""]) }),
      () => Object.assign(made, { preserveUnknownFields: dice.chance(0.5) }),
      () =>
        Object.assign(made, {
          conversion: dice.pick<Json>([{ strategy: "None" }, { strategy: "Webhook" }, { strategy: "x" }]),
        }),
      () => (made.versions = [version, { ...version, name: "v2", storage: false }]),
      () => (made.versions = [version, { ...version }]),
      () => (made.versions = []),
      () => Object.assign(made, { nope: 1 }),
    ];
    dice.pick(changes)();
  }
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${String(made.group)}` },
    spec: made,
  };
}

const values: readonly unknown[] = [
  ...["", "a", "abc", "A-1", "1Gi", "5m", "2026-01-01T00:00:00Z", "x".repeat(40)],
  ...[0, 1, -1, 7, 1.5, 2 ** 53, true, null],
  ...[[], ["a"], ["a", "a"], ["b", "a"], {}, { a: "x" }, { a: "x", b: "x" }, { a: 1 }, { k: "v" }, { nope: 1 }],
];

/** An object for a definition that was accepted: some fields, most with a value of their type. */
export function objectOf(dice: Dice, definition: Json): Json {
  const { group, names, versions } = definition.spec as {
    group: string;
    names: { kind: string };
    versions: { name: string }[];
  };
  const spec: Json = { s: "abc", n: 3, l: ["a", "b"], m: { k: "v" }, o: { a: "x", b: "x" }, q: "1Mi", d: "5m", i: 1 };
  for (const name of Object.keys(spec)) {
    const fate = dice.below(10);
    if (fate < 3) delete spec[name];
    else if (fate < 6) spec[name] = structuredClone(dice.pick(values));
  }
  return {
    apiVersion: `${group}/${versions[0]?.name}`,
    kind: names.kind,
    metadata: { name: "a" },
    ...(dice.chance(0.95) && { spec }),
  };
}
