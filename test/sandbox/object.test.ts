import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { objectOf } from "../../runtime/sandbox/guest/object.guest.ts";
import { fixtureForTest } from "./fixture.ts";

type Target = Record<string, unknown>;

/** The JSON text of an object with these members, and the position of its metadata. */
function textOf(members: Target): readonly [text: string, at: number, end: number] {
  const text = JSON.stringify(members);
  const before = JSON.stringify(Object.fromEntries(Object.entries(members).slice(0, keysBefore(members))));
  const at = (before === "{}" ? 1 : before.length) + '"metadata":'.length;
  return [text, at, at + JSON.stringify(members.metadata).length];
}

const keysBefore = (members: Target) => Object.keys(members).indexOf("metadata");

const names = fc.constantFrom("apiVersion", "metadata", "spec", "status", "toJSON", "more");
/** Without the numbers whose text is kept, because their fields have getters. */
const value = fc.jsonValue({ maxDepth: 2 }).filter((each) => !/\d{16}/.test(JSON.stringify(each)));
const objects = fc
  .record(
    { apiVersion: fc.constant("v1"), metadata: fc.dictionary(fc.string(), value), spec: value },
    { requiredKeys: ["metadata"] },
  )
  .chain((members) => fc.shuffledSubarray(Object.entries(members), { minLength: Object.keys(members).length }))
  .map((entries) => Object.fromEntries(entries) as Target);

const one = () => 1;
function selfOf(this: unknown): unknown {
  return this;
}

/** Operations of a handler on an object. Each returns what the handler observes. */
const acts: Readonly<Record<string, (object: Target, name: string, given: unknown) => unknown>> = {
  get: (object, name) => object[name],
  set: (object, name, given) => Reflect.set(object, name, given),
  has: (object, name) => name in object,
  delete: (object, name) => Reflect.deleteProperty(object, name),
  define: (object, name, given) => Reflect.defineProperty(object, name, { value: given, configurable: true }),
  keys: (object) => Object.keys(object),
  descriptor: (object, name) => Object.getOwnPropertyDescriptor(object, name),
  json: (object) => JSON.stringify(object),
  spread: (object) => ({ ...object }),
  label: (object, name, given) => Reflect.set(object.metadata ?? {}, name, given),
  freeze: (object) => Object.isFrozen(Object.freeze(object)),
  extensible: (object) => Object.isExtensible(object),
  prototype: (object) => Object.getPrototypeOf(object) === Object.prototype,
  heir: (object, name, given) => {
    const heir: Target = Object.create(object);
    return [Reflect.set(heir, name, given), Object.hasOwn(heir, name), heir[name]];
  },
  self: (object, name) => {
    const isDefined = Reflect.defineProperty(object, name, { get: one, configurable: true });
    const hasSelf = Reflect.defineProperty(object, "self", { get: selfOf, configurable: true });
    return [isDefined, hasSelf, object.self === object, Reflect.deleteProperty(object, "self")];
  },
  inherit: (object) => Reflect.setPrototypeOf(object, Object.prototype),
};

describe("an event's object of which metadata is read first", () => {
  it("is to a handler what JSON.parse gives, whatever it does with it", () => {
    const steps = fc.array(fc.tuple(fc.constantFrom(...Object.keys(acts)), names, value), { maxLength: 12 });
    fc.assert(
      fc.property(objects, steps, (members, taken) => {
        const text = textOf(members);
        const plain = JSON.parse(text[0]) as Target;
        const read = objectOf(...text, { numbers: undefined }) as Target;
        for (const [act, name, given] of taken) {
          const outcomes = [plain, read].map((object) => {
            const own = given === undefined ? undefined : JSON.parse(JSON.stringify(given));
            try {
              return acts[act]?.(object, name, own);
            } catch (error) {
              return (error as Error).name;
            }
          });
          expect(outcomes[1]).toStrictEqual(outcomes[0]);
        }
        expect(JSON.stringify(read)).toBe(JSON.stringify(plain));
      }),
      { numRuns: 2000 },
    );
  });

  it("keeps the metadata that was handed out, as it is by then", () => {
    const object = objectOf(...textOf({ kind: "Pod", metadata: { labels: {} }, spec: 1 }), {
      numbers: undefined,
    }) as Target;
    const metadata = object.metadata as Target;
    metadata.labels = { app: "web" };
    expect(object.spec).toBe(1);
    expect(object.metadata).toBe(metadata);
    expect({ ...object }).toEqual({ kind: "Pod", metadata: { labels: { app: "web" } }, spec: 1 });
  });

  it("is not parsed beyond metadata for who asks for no more", () => {
    const text = '{"metadata":{"name":"a"},"spec":no JSON}';
    const object = objectOf(text, 12, 24, { numbers: undefined }) as Target;
    expect(object.metadata).toEqual({ name: "a" });
    expect(() => object.spec).toThrow(SyntaxError);
  });

  it("is the same in an isolate, where characters are bytes and where they are not", async () => {
    const fixture = fixtureForTest();
    const code = `export default ({ object }, ctx) => {
      const { labels } = object.metadata;
      ctx.log.info("seen", { labels, keys: Object.keys(object), whole: JSON.stringify(object) });
    };`;
    await fixture.load("f", code);
    for (const app of ["web", "wëb \u{1F525}"]) {
      const object = { apiVersion: "v1", kind: "Pod", metadata: { labels: { app } }, spec: { node: "a" } };
      const body = Buffer.from(JSON.stringify(object));
      const at = body.indexOf('{"labels"');
      const end = body.indexOf(',"spec"');
      expect(await run(fixture.sandbox, fixture.delivery("f", { body, metadata: { at, end } }))).toMatchObject({
        type: "ok",
      });
      const { fields } = fixture.logs.at(-1) ?? {};
      expect(fields).toEqual({
        labels: { app },
        keys: ["apiVersion", "kind", "metadata", "spec"],
        whole: JSON.stringify(object),
      });
    }
  });

  it("reads no descriptor through what a handler put on the prototype of all objects", async () => {
    const fixture = fixtureForTest();
    const code = `export default ({ object }, ctx) => {
      Object.prototype.get = () => "another";
      Object.prototype.writable = true;
      const { spec } = object;
      object.more = 1;
      Object.defineProperty(object, "fixed", Object.assign(Object.create(null), { value: 2 }));
      const { writable } = Object.getOwnPropertyDescriptor(object, "fixed");
      ctx.log.info("seen", { keys: Object.keys(object), whole: JSON.stringify(object), n: spec.n, writable });
    };`;
    await fixture.load("f", code);
    const body = Buffer.from('{"metadata":{"name":"a"},"spec":{"n":1}}');
    const seen = [];
    for (const metadata of [{ at: 12, end: 24 }, undefined]) {
      const ran = await run(fixture.sandbox, fixture.delivery("f", { body, metadata }));
      seen.push([ran.type, fixture.logs.at(-1)?.fields]);
    }
    expect(seen[0]).toEqual(seen[1]);
    expect(seen[0]?.[0]).toBe("ok");
  });

  it("looks for no trap where a handler could put one", async () => {
    const fixture = fixtureForTest();
    const code = `for (const name of ["apply", "getPrototypeOf", "isExtensible", "setPrototypeOf"])
      Object.prototype[name] = () => { throw new Error("looked up " + name); };
    export default ({ object }) => {
      if (Object.getPrototypeOf(object) !== Object.prototype || !Object.isExtensible(object)) throw new Error("another");
      if (object.metadata.name !== "a" || object.spec.n !== 1) throw new Error("another object");
    };`;
    await fixture.load("f", code);
    const body = Buffer.from('{"metadata":{"name":"a"},"spec":{"n":1}}');
    expect(await run(fixture.sandbox, fixture.delivery("f", { body, metadata: { at: 12, end: 24 } }))).toMatchObject({
      type: "ok",
    });
  });
});
