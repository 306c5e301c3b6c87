import type { Json, JsonObject } from "../../../runtime/cluster/schema/index.ts";

const rule = (text: string, rest: JsonObject = {}): JsonObject => ({ rule: text, ...rest });
const rules = (...all: JsonObject[]): JsonObject => ({ "x-kubernetes-validations": all });
const int: JsonObject = { type: "integer" };
const string: JsonObject = { type: "string" };
const formats = [
  "date",
  "byte",
  "email",
  "ipv4",
  "ipv6",
  "cidr",
  "uri",
  "hostname",
  "uuid",
  "mac",
  "duration",
  "hexcolor",
];

/** The fields of a spec with one field for each feature of a schema. */
export const probeFields: JsonObject = {
  int: { ...int, minimum: 0, maximum: 10 },
  int32: { ...int, format: "int32" },
  number: { type: "number", multipleOf: 0.5 },
  bounds: { ...int, minimum: 0, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: true },
  text: { ...string, minLength: 2, maxLength: 4, pattern: "^a*$" },
  enum: { ...string, enum: ["A", "B"] },
  ints: { ...int, enum: [1, 2] },
  nullable: { ...string, nullable: true, enum: ["a"] },
  either: { "x-kubernetes-int-or-string": true },
  at: { ...string, format: "date-time" },
  formats: { type: "object", properties: Object.fromEntries(formats.map((format) => [format, { ...string, format }])) },
  list: { type: "array", minItems: 1, maxItems: 2, items: int },
  set: { type: "array", "x-kubernetes-list-type": "set", items: string },
  keyed: {
    type: "array",
    maxItems: 5,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["n"],
    items: {
      type: "object",
      required: ["n"],
      properties: {
        n: { ...string, maxLength: 5 },
        v: { ...int, ...rules(rule("self >= oldSelf", { message: "grow" })) },
      },
    },
  },
  map: { type: "object", minProperties: 1, maxProperties: 2, additionalProperties: string },
  one: { type: "object", properties: { p: int, q: int }, oneOf: [{ required: ["p"] }, { required: ["q"] }] },
  any: { type: "object", properties: { p: int, q: int }, anyOf: [{ required: ["p"] }, { required: ["q"] }] },
  all: { ...int, allOf: [{ minimum: 5 }, { maximum: 3 }], not: { enum: [4] } },
  embedded: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
  rule: { ...int, ...rules(rule("self > 1", { message: "more" }), rule("self != 3")) },
  said: {
    ...string,
    maxLength: 9,
    ...rules(rule("self != 'x'", { messageExpression: "'not ' + self", reason: "FieldValueForbidden" })),
  },
  pair: {
    type: "object",
    properties: { x: int, y: int },
    ...rules(rule("self.x < self.y", { message: "x<y", fieldPath: ".x" })),
  },
  fixed: { ...string, ...rules(rule("self == oldSelf", { message: "immutable" })) },
  once: { ...string, ...rules(rule("!oldSelf.hasValue() || oldSelf.value() == self", { optionalOldSelf: true })) },
  since: { ...string, format: "date-time", ...rules(rule("self > timestamp('2020-01-01T00:00:00Z')")) },
  quantity: { ...string, maxLength: 20, ...rules(rule("quantity(self).isGreaterThan(quantity('1Ki'))")) },
  "a-b": { ...int, default: 1 },
};

/** Specs to send with that schema. */
export const probes: JsonObject[] = [
  { int: 11 },
  { int: -1 },
  { int: 1.5 },
  { int: "1" },
  { int: null },
  { int: 5.0 },
  { int32: 2 ** 31 },
  { number: 0.7 },
  { number: "x" },
  { bounds: 0 },
  { bounds: 5 },
  { text: "a" },
  { text: "aaaaa" },
  { text: "bb" },
  { text: 3 },
  { enum: "C" },
  { enum: 3 },
  { ints: 3 },
  { nullable: null },
  { nullable: "b" },
  { either: true },
  { either: 1.5 },
  { either: "x" },
  { at: "yesterday" },
  { at: "2026-02-30T00:00:00Z" },
  { at: "2021-01-01T00:00:00.5+01:00" },
  ...["2020-13-01", "!!", "x", "1.2.3", "::zz", "1.2.3.4/99", "not a uri", "-x-", "zz", "zz", "x", "q"].map(
    (value, index): JsonObject => ({ formats: { [formats[index] ?? ""]: value } }),
  ),
  {
    formats: {
      date: "2020-01-01",
      byte: "YQ==",
      email: "a@b.c",
      ipv4: "1.2.3.4",
      ipv6: "::1",
      cidr: "1.2.3.0/24",
      uri: "http://x/y",
    },
  },
  {
    formats: {
      uuid: "123e4567-e89b-12d3-a456-426614174000",
      mac: "01:02:03:04:05:06",
      duration: "1h30m",
      hexcolor: "#fff",
    },
  },
  { list: [] },
  { list: [1, 2, 3] },
  { list: ["x"] },
  { list: {} },
  { list: [null] },
  { set: ["a", "b", "a"] },
  { keyed: [{ n: "a" }, { n: "a", v: 1 }] },
  { keyed: [1] },
  { keyed: [{ v: 1 }] },
  { map: {} },
  { map: { a: "", b: "", c: "" } },
  { map: { "a.b/c": 1 } },
  { map: [] },
  { one: {} },
  { one: { p: 1, q: 1 } },
  { one: { p: 1 } },
  { any: {} },
  { any: { q: 1 } },
  { all: 4 },
  { all: 6 },
  { embedded: {} },
  { rule: 1 },
  { rule: 3 },
  { said: "x" },
  { pair: { x: 2, y: 1 } },
  { pair: { x: 2 } },
  { fixed: "a" },
  { once: "a" },
  { since: "2019-01-01T00:00:00Z" },
  { quantity: "1" },
  { quantity: "1Mi" },
  { quantity: "x" },
  { rule: 1, int: "x" },
];

/** Updates: the spec before and after. */
export const probeUpdates: [JsonObject, JsonObject][] = [
  [{ fixed: "a" }, { fixed: "b" }],
  [{ fixed: "a" }, {}],
  [{ once: "a" }, { once: "b" }],
  [
    {
      keyed: [
        { n: "a", v: 2 },
        { n: "b", v: 2 },
      ],
    },
    {
      keyed: [
        { n: "b", v: 1 },
        { n: "a", v: 3 },
      ],
    },
  ],
];

/** Schemas of one field, most of them invalid. */
export const fieldSchemas: JsonObject[] = [
  {},
  { type: "foo" },
  { type: "array" },
  { $ref: "#/x" },
  { type: "array", items: [string] },
  { type: "array", uniqueItems: true, items: string },
  { type: "object", properties: { a: string }, additionalProperties: string },
  { type: "object", additionalProperties: {} },
  { type: "object", definitions: { a: string } },
  { type: "object", patternProperties: { a: string } },
  {
    type: "object",
    properties: { a: string },
    anyOf: [{ type: "object" }, { properties: { a: { type: "string", description: "d", default: 1 } } }],
  },
  { type: "object", properties: { a: string }, not: { additionalProperties: true } },
  { "x-kubernetes-int-or-string": true, allOf: [{ anyOf: [int, string] }, { pattern: "x" }] },
  { type: "object", "x-kubernetes-embedded-resource": true },
  { type: "string", "x-kubernetes-embedded-resource": true },
  { type: "object", "x-kubernetes-preserve-unknown-fields": false },
  { type: "array", "x-kubernetes-list-type": "set", items: { type: "object", properties: { a: string } } },
  { type: "array", "x-kubernetes-list-type": "map", items: { type: "object", properties: { a: string } } },
  {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a"],
    items: { type: "object", properties: { a: string } },
  },
  {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["b", "b"],
    items: { type: "object", properties: { a: string } },
  },
  { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], items: string },
  { type: "array", "x-kubernetes-list-type": "foo", items: string },
  { type: "object", "x-kubernetes-list-type": "set" },
  { type: "array", "x-kubernetes-map-type": "atomic", items: string },
  { type: "array", "x-kubernetes-list-map-keys": ["a"], items: string },
  { type: "string", default: 1 },
  { type: "object", properties: { a: string }, default: { b: 1 } },
  { type: "string", default: "B", pattern: "^a" },
  { type: "string", pattern: "(" },
  { type: "string", pattern: "(?=a)" },
  { ...int, ...rules(rule("foo > 1")) },
  { ...int, ...rules(rule("self + 1")) },
  { type: "object", properties: { a: string }, ...rules(rule("self.b == 'a'")) },
  { type: "object", properties: { a: string }, ...rules(rule("self.a == 1")) },
  { ...int, ...rules(rule("")) },
  { ...int, ...rules(rule("self>1", { message: " " }), rule("self>1", { message: "a\nb" }), rule("self>1\n||true")) },
  {
    type: "object",
    properties: { a: string },
    ...rules(rule("true", { reason: "Foo", fieldPath: ".z" }), rule("true", { fieldPath: "a" })),
  },
  { type: "array", maxItems: 2, items: { ...string, maxLength: 2, ...rules(rule("self == oldSelf")) } },
  { ...string, ...rules(rule("self == 'a'", { optionalOldSelf: true })) },
];

const containers = (items: Json[], rest: JsonObject = {}): JsonObject => ({
  spec: { template: { spec: { containers: items, ...rest } } },
});
const order = (...names: string[]): JsonObject => ({ "$setElementOrder/containers": names.map((name) => ({ name })) });

/** Strategic merge patches of the deployment below. */
export const strategicPatches: JsonObject[] = [
  containers([{ name: "d", image: "j" }]),
  containers([{ name: "e", image: "j" }]),
  containers([{ name: "d", $patch: "delete" }]),
  containers([{ $patch: "replace" }, { name: "z", image: "q" }]),
  containers([
    {
      name: "c",
      env: [
        { name: "B", value: "2" },
        { name: "C", value: "3" },
      ],
    },
  ]),
  containers([{ name: "d" }, { name: "c" }], order("d", "c")),
  containers([{ name: "e", image: "j" }], order("d", "e", "c")),
  containers([{ name: "e", image: "j" }], order("e", "d")),
  containers([{ name: "e", image: "j" }], order("d")),
  { spec: { template: { spec: order("d", "c") } } },
  containers([{ name: "c", env: [{ name: "C", value: "3" }], "$setElementOrder/env": [{ name: "C" }, { name: "A" }] }]),
  containers([{ image: "j" }]),
  containers([{ name: "c", args: ["z"] }]),
  containers([{ name: "c", env: null }]),
  containers([{ name: "zz", $patch: "delete" }]),
  containers([{ $patch: "delete" }]),
  containers([{ $patch: "merge", name: "c", image: "q" }]),
  { spec: { template: { spec: { containers: "x" } } } },
  { metadata: { finalizers: ["a.b/d"] } },
  { metadata: { "$deleteFromPrimitiveList/finalizers": ["a.b/b"] } },
  { metadata: { "$setElementOrder/finalizers": ["a.b/c", "a.b/e", "a.b/b"], finalizers: ["a.b/e"] } },
  { metadata: { labels: { $patch: "replace", z: "1" } } },
  { metadata: { labels: { $patch: "frob" } } },
  { metadata: { labels: { $retainKeys: ["q"], z: "1" } } },
];

export const deployment: JsonObject = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "patched", labels: { l: "1" }, finalizers: ["a.b/b", "a.b/c"] },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: {
      metadata: { labels: { a: "b" } },
      spec: {
        containers: [
          {
            name: "c",
            image: "i",
            args: ["x"],
            env: [
              { name: "A", value: "1" },
              { name: "B", value: "1" },
            ],
          },
          { name: "d", image: "i" },
        ],
      },
    },
  },
};

/** JSON patches of `{ data: { a: "1" } }`. */
export const jsonPatches: Json[] = [
  {},
  [1],
  [{ op: "frob", path: "/a" }],
  [{ op: "add", value: 1 }],
  [{ op: "remove", path: "/data/z" }],
  [{ op: "replace", path: "/data/z", value: "1" }],
  [{ op: "add", path: "/nope/z", value: "1" }],
  [{ op: "test", path: "/data/a", value: "2" }],
  [{ op: "test", path: "/data/z", value: null }],
  [
    { op: "test", path: "/data/a", value: "1" },
    { op: "add", path: "/data/b", value: "c" },
  ],
  [{ op: "move", from: "/data/a", path: "/data/y" }],
  [{ op: "copy", from: "/data/a", path: "/data/y" }],
  [{ op: "remove", path: "" }],
];

/** One write in a history: an apply by a manager, forced or not, or an update (a merge patch). */
export type Write = { by: string; spec: JsonObject; force?: true; update?: true };

/** Consecutive writes to one custom resource. */
export const history: Write[] = [
  { by: "m1", spec: { int: 1, keyed: [{ n: "x", v: 1 }], set: ["b", "a"], map: { a: "1" } } },
  { by: "m1", spec: { int: 1, keyed: [{ n: "x", v: 1 }], set: ["b", "a"], map: { a: "1" } } },
  { by: "m2", spec: { int: 2, map: { a: "2" } } },
  { by: "m2", spec: { keyed: [{ n: "y", v: 2 }, { n: "x" }], set: ["c", "a"] } },
  { by: "m3", spec: { int: 1 } },
  { by: "m1", spec: { set: ["a"] } },
  { by: "cli", spec: { int: 7, list: [1] }, update: true },
  { by: "m2", spec: { int: 3, list: [1, 2] } },
  { by: "m2", spec: { int: 3, list: [1, 2] }, force: true },
  { by: "m2", spec: { keyed: [{ n: "w" }, { n: "x" }, { n: "q" }, { n: "y", v: 2 }] } },
  { by: "m4", spec: { keyed: [{ n: "y" }, { n: "n" }, { n: "w" }], set: ["z", "a", "c"] } },
  { by: "m5", spec: { keyed: [], set: [], map: { b: "1" } } },
  { by: "m1", spec: { keyed: [{ n: "x" }, { n: "x" }] } },
  { by: "m1", spec: { keyed: [{ v: 1 }] } },
  { by: "m1", spec: { nope: 1 } },
  { by: "m1", spec: { int: "x" } },
  { by: "cli", spec: { keyed: null, set: ["new"] }, update: true },
  { by: "m6", spec: { set: ["x", "y", "z"] } },
  { by: "m7", spec: { set: ["z", "x"] } },
];
