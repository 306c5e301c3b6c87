import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  applyDefaults,
  builtInSchema,
  type JsonObject,
  type ManagedFieldsEntry,
  type Schema,
  serverSideApply,
} from "../../../runtime/cluster/schema/index.ts";
import { widget, widgetOf } from "./widget.ts";

const configMap = builtInSchema("", "v1", "ConfigMap") ?? {};
const deployment = builtInSchema("apps", "v1", "Deployment") ?? {};
const later = (seconds: number): number => Date.UTC(2026, 0, 1, 0, 0, seconds);

/** An object to which managers apply in turn. */
class Store {
  live: JsonObject | undefined;
  readonly #schema: Schema;
  readonly #apiVersion: string;
  #seconds = 0;

  constructor(schema: Schema, apiVersion: string) {
    this.#schema = schema;
    this.#apiVersion = apiVersion;
  }

  /** Applies a configuration. Returns the object, or the message of the refusal. */
  apply(manager: string, applied: JsonObject, force = false): JsonObject | string {
    const now = later(this.#seconds++);
    const request = {
      live: this.live,
      applied,
      manager,
      apiVersion: this.#apiVersion,
      force,
      schema: this.#schema,
      now,
    };
    const result = serverSideApply(request);
    if (result.error) return result.error.message;
    if (result.conflicts) return result.message;
    this.live =
      result.object === this.live || this.#schema.builtIn ? result.object : applyDefaults(this.#schema, result.object);
    return this.live;
  }

  get owners(): Record<string, JsonObject> {
    const { managedFields = [] } = (this.live?.metadata ?? {}) as { managedFields?: ManagedFieldsEntry[] };
    return Object.fromEntries(managedFields.map((entry) => [entry.manager, entry.fieldsV1]));
  }
}
const config = (data?: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "c", ...metadata },
  ...(data ? { data } : {}),
});
const configs = (): Store => new Store(configMap, "v1");
const widgets = (): Store => new Store(widget, "example.com/v1");

describe("server-side apply", () => {
  it("makes the object, and its manager the owner of just the fields applied", () => {
    const store = configs();
    store.apply("me", config({ a: "1" }, { labels: { l: "x" } }));
    expect(store.live).toMatchObject({ data: { a: "1" }, metadata: { name: "c" } });
    expect(store.owners).toEqual({ me: { "f:data": { "f:a": {} }, "f:metadata": { "f:labels": { "f:l": {} } } } });
  });

  it("of the same again changes nothing, times included", () => {
    const field = fc.constantFrom("1", "2");
    const data = fc.dictionary(fc.constantFrom("a", "b", "c", "__proto__"), field);
    fc.assert(
      fc.property(data, data, (one, two) => {
        const store = configs();
        store.apply("one", config(one));
        store.apply("two", config(two), true);
        const before = store.live;
        expect(store.apply("two", config(two), true)).toBe(before);
      }),
    );
  });

  it("removes what its manager applied before and applies no more", () => {
    const store = configs();
    store.apply("me", config({ a: "1", b: "2" }));
    store.apply("me", config({ b: "2" }));
    expect(store.live).toMatchObject({ data: { b: "2" } });
    store.apply("me", config());
    expect(store.live).not.toHaveProperty("data");
  });

  it("leaves a field that another owns, too, until the last owner lets go", () => {
    const store = configs();
    store.apply("one", config({ a: "1" }));
    store.apply("two", config({ a: "1" }));
    store.apply("one", config());
    expect(store.live).toMatchObject({ data: { a: "1" } });
    expect(Object.keys(store.owners)).toEqual(["two"]);
    store.apply("two", config());
    expect(store.live).not.toHaveProperty("data");
  });

  it("refuses to change what others own, naming owners and fields", () => {
    const store = configs();
    store.apply("one", config({ a: "1", b: "1" }));
    expect(store.apply("two", config({ a: "2" }))).toBe('Apply failed with 1 conflict: conflict with "one": .data.a');
    expect(store.apply("two", config({ a: "2", b: "2", c: "2" }))).toBe(
      'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b',
    );
    expect(store.live).toMatchObject({ data: { a: "1", b: "1" } });
  });

  it("by force takes what others own, and leaves them the rest", () => {
    const store = configs();
    store.apply("one", config({ a: "1", b: "1" }));
    store.apply("two", config({ a: "2" }), true);
    expect(store.live).toMatchObject({ data: { a: "2", b: "1" } });
    expect(store.owners).toEqual({ one: { "f:data": { "f:b": {} } }, two: { "f:data": { "f:a": {} } } });
  });

  it("takes an object that nobody manages for somebody's", () => {
    const store = configs();
    store.live = { ...config({ a: "1" }), metadata: { name: "c" } };
    expect(store.apply("me", config({ a: "2" }))).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a',
    );
  });

  it("merges lists that are maps by key, in the order applied, each item with its own owners", () => {
    const store = widgets();
    store.apply("one", widgetOf({ name: "a", ports: [{ name: "x", number: 1 }] }));
    store.apply("two", widgetOf({ ports: [{ name: "y" }, { name: "x", protocol: "UDP" }] }), true);
    expect(store.live).toMatchObject({
      spec: {
        ports: [
          { name: "y", protocol: "TCP" },
          { name: "x", number: 1, protocol: "UDP" },
        ],
      },
    });
    store.apply("one", widgetOf({ name: "a" }));
    expect(store.live).toMatchObject({ spec: { ports: [{ name: "y" }, { name: "x", protocol: "UDP" }] } });
    expect(JSON.stringify(store.live)).not.toContain('"number"');
  });

  it("leaves an item that was not applied where it stood, and moves those that were", () => {
    const store = widgets();
    store.apply("one", widgetOf({ name: "a", tags: ["x", "y", "z"] }));
    store.apply("two", widgetOf({ tags: ["z", "x"] }));
    expect(store.live).toMatchObject({ spec: { tags: ["y", "z", "x"] } });
  });

  it("keeps in a set what others put there", () => {
    const store = widgets();
    store.apply("one", widgetOf({ name: "a", tags: ["b", "a"] }));
    store.apply("two", widgetOf({ tags: ["c", "a"] }));
    expect(store.live).toMatchObject({ spec: { tags: ["b", "c", "a"] } });
    store.apply("one", widgetOf({ name: "a" }));
    expect(store.live).toMatchObject({ spec: { tags: ["c", "a"] } });
  });

  it("takes atomic lists and maps as a whole", () => {
    const store = widgets();
    store.apply("one", widgetOf({ name: "a", plain: ["x"], whole: { k: "1" } }));
    expect(store.apply("two", widgetOf({ plain: ["x", "y"], whole: { l: "1" } }))).toBe(
      'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.plain\n- .spec.whole',
    );
    store.apply("two", widgetOf({ plain: ["y"] }), true);
    expect(store.live).toMatchObject({ spec: { plain: ["y"], whole: { k: "1" } } });
  });

  it("names items of lists by their keys, defaults included", () => {
    const store = new Store(deployment, "apps/v1");
    const template = (image: string): JsonObject => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "d" },
      spec: { template: { spec: { containers: [{ name: "c", image, ports: [{ containerPort: 80 }] }] } } },
    });
    store.apply("one", template("i"));
    expect(JSON.stringify(store.owners.one)).toContain('k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}');
    expect(store.apply("two", template("j"))).toBe(
      'Apply failed with 1 conflict: conflict with "one": .spec.template.spec.containers[name="c"].image',
    );
  });

  it.each<[string, JsonObject, string]>([
    ["an undeclared field", { ...widgetOf({}), extra: 1 }, ".extra: field not declared in schema"],
    ["a wrong type", widgetOf({ replicas: "x" }), ".spec.replicas: expected numeric (int or float), got string"],
    [
      "the same key twice",
      widgetOf({ ports: [{ name: "x" }, { name: "x" }] }),
      '.spec.ports: duplicate entries for key [name="x"]',
    ],
    ["the same value twice in a set", widgetOf({ tags: ["a", "a"] }), '.spec.tags: duplicate entries for key [="a"]'],
  ])("refuses a configuration with %s", (_, applied, text) => {
    expect(widgets().apply("me", applied)).toBe(
      `failed to create typed patch object (/w; example.com/v1, Kind=Widget): ${text}`,
    );
  });

  it("refuses a configuration that brings managedFields or another version", () => {
    expect(configs().apply("me", config({}, { managedFields: [] }))).toBe("metadata.managedFields must be nil");
    expect(configs().apply("me", { ...config({}), apiVersion: "v2" })).toContain("Incorrect version specified");
  });

  it("of disjoint fields by two managers gives the same in either order", () => {
    const pick = (keys: readonly string[]) => fc.dictionary(fc.constantFrom(...keys), fc.constantFrom("1", "2"));
    fc.assert(
      fc.property(pick(["a", "b"]), pick(["c", "d"]), (one, two) => {
        const run = (order: [string, JsonObject][]): JsonObject | undefined => {
          const store = configs();
          for (const [manager, data] of order) store.apply(manager, config(data));
          return store.live;
        };
        const left = run([
          ["one", one],
          ["two", two],
        ]);
        const right = run([
          ["two", two],
          ["one", one],
        ]);
        expect(left?.data).toEqual(right?.data);
      }),
    );
  });
});
