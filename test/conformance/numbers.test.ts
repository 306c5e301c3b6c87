import { beforeAll, describe, expect, test } from "vitest";
import { patchType, type Query, type Reply } from "../target/client.ts";
import { type Definition, defineWidgets } from "../target/crd.ts";
import { admin, createNamespace, eventually, Kubectl, unique } from "../target/fixture.ts";

/** The schema's bounds are doubles, its enums and defaults are exact. */
const schemaText = `{"type":"object","properties":{
  "status":{"type":"object","properties":{"seen":{"type":"integer","format":"int64"}}},
  "spec":{"type":"object","properties":{
    "id":{"type":"integer"},"long":{"type":"integer","format":"int64"},"short":{"type":"integer","format":"int32"},
    "ratio":{"type":"number"},"text":{"type":"string"},
    "any":{"x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true},
    "bounded":{"type":"integer","minimum":9007199254740992,"maximum":9007199254740994,"exclusiveMaximum":true},
    "third":{"type":"integer","multipleOf":3},
    "chosen":{"type":"integer","enum":[9007199254740993]},"rounded":{"type":"number","maximum":9007199254740993},
    "filled":{"type":"object","properties":{"id":{"type":"integer","default":9007199254740993}}},
    "rising":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf"}]},
    "span":{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"}},
      "x-kubernetes-validations":[{"rule":"self.from < self.to"}]},
    "ids":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
    "parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"],
      "items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"note":{"type":"string"}}}}
  }}}}`;

/** The JSON of an answer, with each number as the text that the server wrote. */
function written({ text }: Reply) {
  const asText = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? context?.source : value;
  return JSON.parse(text, asText);
}

describe("numbers", () => {
  let widgets: Definition;
  let namespace: string;
  let path: string;
  beforeAll(async () => {
    // The schema is appended as text, because JSON.stringify would round the numbers.
    const version = { name: "v1", served: true, storage: true, subresources: { status: {} } };
    const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    const columns = [{ name: "Id", type: "integer", jsonPath: ".spec.id" }];
    widgets = await defineWidgets({
      versions: [{ ...version, schema: { openAPIV3Schema: open }, additionalPrinterColumns: columns }],
    });
    namespace = await createNamespace();
    path = widgets.in(namespace);
    const schema = `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":${schemaText}},
      {"op":"add","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.id"}]}]`;
    const { status, text } = await admin.reply("PATCH", widgets.crd, { body: schema, type: patchType.json });
    expect(status, text).toBe(200);
    // The definition is served once a value out of bounds is refused.
    await eventually(
      () => create(`{"chosen":1}`),
      (reply) => reply.status === 422,
    );
  });

  const object = (name: string, spec: string) =>
    `{"apiVersion":"${widgets.apiVersion}","kind":"Widget","metadata":{"name":"${name}"},"spec":${spec}}`;
  const create = (spec: string, name = unique("n")) => admin.reply("POST", path, { body: object(name, spec) });
  const patch = (name: string, body: string, type: keyof typeof patchType = "merge") =>
    admin.reply("PATCH", `${path}/${name}`, { body, type: patchType[type] });
  const apply = (name: string, body: string, fieldManager = "suite", force = true) =>
    admin.reply("PATCH", `${path}/${name}`, { body, type: patchType.apply, query: { fieldManager, force } });

  test.each(["9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808"])(
    "%s is kept exactly by create, get, list, watch and a table",
    async (id) => {
      const name = unique("n");
      const created = await create(`{"id":${id},"long":${id},"ratio":${id},"any":[${id}],"port":${id}}`, name);
      const spec = { id, long: id, ratio: id, any: [id], port: id };
      expect(written(created).spec).toEqual(spec);
      expect(written(await admin.reply("GET", `${path}/${name}`)).spec).toEqual(spec);
      const fieldSelector = `metadata.name=${name}`;
      const list = written(await admin.reply("GET", path, { query: { fieldSelector } }));
      expect(list.items[0].spec).toEqual(spec);
      const watch = await admin.reply("GET", path, { query: { fieldSelector, watch: true, timeoutSeconds: 1 } });
      expect(written(watch).object.spec).toEqual(spec);
      const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
      const table = written(await admin.reply("GET", `${path}/${name}`, { headers: { accept } }));
      expect(table.rows[0].cells[1]).toBe(id);
      const yaml = await admin.reply("GET", `${path}/${name}`, { headers: { accept: "application/yaml" } });
      expect(yaml.text).toContain(`\n  long: ${id}\n`);
    },
  );

  test("selectors by field and by label tell numbers apart that differ by one", async () => {
    const ids = ["9007199254740992", "9007199254740993", "9007199254740994"];
    const label = unique("l");
    for (const id of ids) {
      const labelled = object(unique("n"), `{"id":${id}}`).replace(
        '"metadata":{',
        `"metadata":{"labels":{"${label}":"${id}"},`,
      );
      await admin.reply("POST", path, { body: labelled });
    }
    const found = async (query: Query) =>
      written(await admin.reply("GET", path, { query }))
        .items.map(({ spec }: { spec: { id: string } }) => spec.id)
        .sort();
    expect(await found({ labelSelector: label, fieldSelector: `spec.id=${ids[1]}` })).toEqual([ids[1]]);
    expect(await found({ labelSelector: `${label}>${ids[0]}` })).toEqual([ids[1], ids[2]]);
    expect(await found({ labelSelector: `${label}<${ids[1]}` })).toEqual([ids[0]]);
  });

  test("what an update and a patch leave alone stays exact", async () => {
    const name = unique("n");
    const id = "9007199254740993";
    const before = await create(`{"id":${id}}`, name);
    const body = before.text.replace('"spec":{', '"spec":{"text":"updated",');
    const updated = await admin.reply("PUT", `${path}/${name}`, { body });
    expect(written(updated).spec).toEqual({ id, text: "updated" });
    expect(written(await patch(name, `{"spec":{"text":"merged"}}`)).spec).toEqual({ id, text: "merged" });
    const added = await patch(name, `[{"op":"add","path":"/spec/text","value":"added"}]`, "json");
    expect(written(added).spec).toEqual({ id, text: "added" });
    const applied = await apply(name, object(name, `{"text":"applied"}`));
    expect(written(applied).spec).toEqual({ id, text: "applied" });
    const status = await admin.reply("PATCH", `${path}/${name}/status`, {
      body: `{"status":{"seen":9223372036854775807}}`,
      type: patchType.merge,
    });
    expect(written(status)).toMatchObject({ spec: { id }, status: { seen: "9223372036854775807" } });
  });

  test("a change by one is a change, and none is none", async () => {
    const name = unique("n");
    const { metadata } = written(await create(`{"id":9007199254740992}`, name));
    const same = written(await patch(name, `{"spec":{"id":9007199254740992}}`)).metadata;
    expect(same).toMatchObject({ resourceVersion: metadata.resourceVersion, generation: "1" });
    const changed = written(await patch(name, `{"spec":{"id":9007199254740993}}`));
    expect(changed).toMatchObject({ metadata: { generation: "2" }, spec: { id: "9007199254740993" } });
  });

  test("a JSON patch tests and copies exact numbers", async () => {
    const name = unique("n");
    await create(`{"id":9007199254740993}`, name);
    const test = (value: string) => `{"op":"test","path":"/spec/id","value":${value}}`;
    const copy = `{"op":"copy","from":"/spec/id","path":"/spec/long"}`;
    expect((await patch(name, `[${test("9007199254740992")},${copy}]`, "json")).status).toBe(422);
    const copied = await patch(name, `[${test("9007199254740993")},${copy}]`, "json");
    expect(written(copied).spec).toEqual({ id: "9007199254740993", long: "9007199254740993" });
  });

  test.each([
    ["9007199254740993", "9007199254740993"],
    ["0x20000000000001", "9007199254740993"],
    ["9_007_199_254_740_993", "9007199254740993"],
    ["9223372036854775807", "9223372036854775807"],
    ["18446744073709551615", "18446744073709552000"],
    ["9007199254740993.0", "9007199254740992"],
    ["1.0", "1"],
    ["1e3", "1000"],
    ["010", "8"],
    ["0o10", "8"],
    ["0b11", "3"],
    ["-0x10", "-16"],
    ["+5", "5"],
    [".5", "0.5"],
    ["1e400", "1e400"],
    ["2001-01-01", "2001-01-01"],
  ])("an apply in YAML reads %s as %s", async (yaml, json) => {
    const name = unique("n");
    const head = `apiVersion: ${widgets.apiVersion}\nkind: Widget\nmetadata: { name: ${name} }\n`;
    const reply = await apply(name, `${head}spec:\n  any: ${yaml}\n`);
    expect(reply.status, reply.text).toBe(201);
    expect(written(reply).spec).toEqual({ any: json });
  });

  test("an apply in YAML refuses an infinite number", async () => {
    const name = unique("n");
    const head = `apiVersion: ${widgets.apiVersion}\nkind: Widget\nmetadata: { name: ${name} }\n`;
    const { status, body } = await apply(name, `${head}spec: { any: .inf }\n`);
    expect(status).toBe(400);
    expect(body.message).toBe("error decoding YAML: error converting YAML to JSON: json: unsupported value: +Inf");
  });

  test("kubectl apply --server-side keeps a number exactly", async () => {
    const kubectl = new Kubectl(namespace);
    const name = unique("n");
    await kubectl.ok(["apply", "--server-side", "-f", "-"], object(name, `{"id":9007199254740993}`));
    expect(await kubectl.ok(["get", `widgets.${widgets.group}`, name, "-o", "jsonpath={.spec.id}"])).toBe(
      "9007199254740993",
    );
  });

  test("an apply conflicts over a change by one, and not over the same number", async () => {
    const name = unique("n");
    await apply(name, object(name, `{"id":9007199254740993}`), "first");
    const same = await apply(name, object(name, `{"id":9007199254740993}`), "second", false);
    expect(same.status).toBe(200);
    const other = await apply(name, object(name, `{"id":9007199254740992}`), "third", false);
    expect(other.status).toBe(409);
    expect(other.body.details.causes.map(({ field }: { field: string }) => field)).toEqual([".spec.id", ".spec.id"]);
  });

  test("items of a list are told apart by exact keys, and owned by them", async () => {
    const name = unique("n");
    const [one, two] = ["9007199254740992", "9007199254740993"];
    await apply(
      name,
      object(name, `{"parts":[{"id":${one},"note":"a"},{"id":${two},"note":"b"}],"ids":[${two}]}`),
      "first",
    );
    const merged = written(
      await apply(name, object(name, `{"parts":[{"id":${two},"note":"c"}],"ids":[${one}]}`), "second"),
    );
    expect(merged.spec).toEqual({
      parts: [
        { id: one, note: "a" },
        { id: two, note: "c" },
      ],
      ids: [two, one],
    });
    const owned = merged.metadata.managedFields.find(({ manager }: { manager: string }) => manager === "second");
    expect(owned.fieldsV1["f:spec"]).toEqual({
      "f:parts": { [`k:{"id":${two}}`]: { ".": {}, "f:id": {}, "f:note": {} } },
      "f:ids": { [`v:${one}`]: {} },
    });
  });

  test("a schema's default and enum are exact, its bounds are doubles", async () => {
    expect(written(await create(`{"filled":{}}`)).spec).toEqual({ filled: { id: "9007199254740993" } });
    expect((await create(`{"chosen":9007199254740993}`)).status).toBe(201);
    const properties = written(await admin.reply("GET", widgets.crd)).spec.versions[0].schema.openAPIV3Schema.properties
      .spec.properties;
    expect(properties).toMatchObject({
      chosen: { enum: ["9007199254740993"] },
      rounded: { maximum: "9007199254740992" },
      filled: { properties: { id: { default: "9007199254740993" } } },
    });
  });

  test.each([
    [`{"bounded":9007199254740991}`, "should be greater than or equal to 9007199254740992"],
    [`{"bounded":9007199254740994}`, "should be less than 9007199254740994"],
    [`{"third":9007199254740994}`, "should be a multiple of 3"],
    [`{"chosen":9007199254740992}`, `Unsupported value: 9007199254740992: supported values: "9007199254740993"`],
    [`{"span":{"from":9007199254740993,"to":9007199254740993}}`, "failed rule: self.from < self.to"],
    [`{"ids":[9007199254740993,9007199254740993]}`, "Duplicate value: 9007199254740993"],
    [`{"parts":[{"id":9007199254740993},{"id":9007199254740993}]}`, `Duplicate value: {"id":9007199254740993}`],
    [`{"id":9223372036854775808}`, `must be of type integer: "number"`],
    [`{"long":9223372036854775808}`, `must be of type int64: "float64"`],
    [`{"id":9007199254740993.0}`, `must be of type integer: "number"`],
    [`{"id":1e18}`, `must be of type integer: "number"`],
    [`{"id":1.5}`, "Checked value must be of type integer (default format) in spec.id"],
    [`{"short":2147483648}`, "Checked value must be of type integer with format int32 in spec.short"],
    [`{"short":9223372036854775807}`, "Checked value must be of type integer with format int32 in spec.short"],
    [`{"port":9223372036854775808}`, `must be of type integer,string: "number"`],
    [`{"text":9007199254740993}`, `must be of type string: "integer"`],
  ])("a value that the schema does not allow is refused: %s", async (spec, message) => {
    const { status, body } = await create(spec);
    expect(status).toBe(422);
    expect(body.message).toContain(message);
  });

  test("values next to each other are allowed where only one of them is refused", async () => {
    for (const spec of [
      `{"bounded":9007199254740993}`,
      `{"third":9007199254740993}`,
      `{"span":{"from":9007199254740992,"to":9007199254740993}}`,
      `{"ids":[9007199254740992,9007199254740993]}`,
      `{"parts":[{"id":9007199254740992},{"id":9007199254740993}]}`,
    ]) {
      const { status, text } = await create(spec);
      expect(status, text).toBe(201);
    }
  });

  test("a transition rule sees a change by one", async () => {
    const name = unique("n");
    await create(`{"rising":9007199254740993}`, name);
    const { status, body } = await patch(name, `{"spec":{"rising":9007199254740992}}`);
    expect(status).toBe(422);
    expect(body.message).toContain("spec.rising: Invalid value: 9007199254740992: failed rule: self >= oldSelf");
    expect((await patch(name, `{"spec":{"rising":9007199254740994}}`)).status).toBe(200);
  });

  test.each([
    ["1.0", "1"],
    ["1e3", "1000"],
    ["-0", "0"],
    ["9007199254740993.0", "9007199254740992"],
    ["9223372036854775808", "9223372036854776000"],
    ["18446744073709551615", "18446744073709552000"],
    ["123456789012345678901234567890", "1.2345678901234568e+29"],
    ["1e21", "1e+21"],
    ["1e-7", "1e-7"],
    ["0.1000000000000000055511151231257827", "0.1"],
  ])("a number that is no int64, %s, is a double: %s", async (sent, stored) => {
    const name = unique("n");
    await create(`{"ratio":${sent},"any":${sent}}`, name);
    expect(written(await admin.reply("GET", `${path}/${name}`)).spec).toEqual({ ratio: stored, any: stored });
  });

  test.each(["1.0", "1e3", "-0"])("an integer may be written %s in a custom resource", async (sent) => {
    const name = unique("n");
    expect((await create(`{"id":${sent}}`, name)).status).toBe(201);
    const stored = written(await admin.reply("GET", `${path}/${name}`)).spec.id;
    expect(stored).toBe(String(Number(sent) + 0));
  });

  test("a number that no double holds is refused, in a body and in each patch", async () => {
    const number = "json: cannot unmarshal number 1e400 into Go";
    const created = await create(`{"any":1e400}`);
    expect([created.status, created.body.message]).toEqual([
      400,
      `Widget in version "v1" cannot be handled as a Widget: ${number} value of type float64`,
    ]);
    const name = unique("n");
    await create("{}", name);
    const merged = await patch(name, `{"spec":{"any":1e400}}`);
    expect([merged.status, merged.body.message]).toEqual([
      400,
      `error decoding patch: ${number} value of type float64`,
    ]);
    const added = await patch(name, `[{"op":"add","path":"/spec/any","value":1e400}]`, "json");
    expect([added.status, added.body.message]).toEqual([
      400,
      `error decoding patch: ${number} struct field jsonPatchOp.value of type float64`,
    ]);
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    await admin.post(maps, { metadata: { name } });
    const strategic = await admin.reply("PATCH", `${maps}/${name}`, {
      body: `{"metadata":{"annotations":{"a":"b"}},"more":1e400}`,
      type: patchType.strategic,
    });
    expect([strategic.status, strategic.body.message]).toEqual([400, `${number} value of type float64`]);
  });

  test.each([
    ["1.0", "int32"],
    ["1e0", "int32"],
    ["1.5", "int32"],
    ["2147483648", "int32"],
    ["9007199254740993", "int32"],
    ["9223372036854775808", "int32"],
    ["1e400", "int32"],
  ])("an integer of a built-in kind is no %s", async (replicas, type) => {
    const labels = `{"app":"a"}`;
    const template = `{"metadata":{"labels":${labels}},"spec":{"containers":[{"name":"a","image":"a"}]}}`;
    const { status, body } = await admin.reply("POST", `/apis/apps/v1/namespaces/${namespace}/deployments`, {
      body: `{"metadata":{"name":"${unique("n")}"},"spec":{"replicas":${replicas},"selector":{"matchLabels":${labels}},"template":${template}}}`,
    });
    expect(status).toBe(400);
    expect(body.message).toMatch(
      new RegExp(
        `json: cannot unmarshal number ${replicas} into Go struct field \\w+\\.spec\\.replicas of type ${type}$`,
      ),
    );
  });

  test("an int64 of a built-in kind is exact, and so is what it holds raw", async () => {
    const revisions = `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
    const name = unique("n");
    const created = await admin.reply("POST", revisions, {
      body: `{"metadata":{"name":"${name}"},"revision":9007199254740993,"data":{"id":9007199254740993}}`,
    });
    expect(created.status, created.text).toBe(201);
    expect(written(created)).toMatchObject({ revision: "9007199254740993", data: { id: "9007199254740993" } });
    const changed = await admin.reply("PATCH", `${revisions}/${name}`, {
      body: `{"revision":9223372036854775807}`,
      type: patchType.strategic,
    });
    expect(written(changed)).toMatchObject({ revision: "9223372036854775807", data: { id: "9007199254740993" } });
  });
});
