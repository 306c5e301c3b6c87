import fc from "fast-check";
import { expect, test } from "vitest";
import { eachItem } from "../../runtime/manifest/field-path.ts";
import { FieldIndex, mostValues } from "../../runtime/reads/field-index.ts";

test("an index tells whole numbers apart that JavaScript takes for one", () => {
  const index = new FieldIndex(["spec", "id"]);
  const kept = ["9007199254740992", "9007199254740993"].map((id) => ({
    id,
    body: Buffer.from(`{"spec":{"id":${id}}}`),
  }));
  // The second object's key is written with an escape.
  kept.push({ id: "9007199254740994", body: Buffer.from('{"sp\\u0065c":{"id":9007199254740994}}') });
  for (const each of kept) index.add(each);
  for (const each of kept) expect([...index.of(each.id)]).toEqual([each]);
});

const byOwner = ["metadata", "ownerReferences", eachItem, "uid"];
const keptOf = (object: unknown) => ({ body: Buffer.from(JSON.stringify(object)) });

test("an index that leads into a list finds an object under each of its values, until it is removed", () => {
  const index = new FieldIndex(byOwner);
  const owned = (...uids: unknown[]) => keptOf({ metadata: { ownerReferences: uids.map((uid) => ({ uid })) } });
  const [both, one, twice] = [owned("a", "b"), owned("b"), owned("c", "c", 7, true, null, { d: 1 })];
  const others = [{}, { metadata: { ownerReferences: "a" } }, { metadata: { ownerReferences: [["a"], "a", null] } }];
  const bytes = [both, one, twice].map((each) => index.add(each));
  for (const each of others) expect(index.add(keptOf(each))).toBe(0);
  const found = (value: string) => [...index.of(value)];
  expect(["a", "b", "c", "7", "true", "null", "d"].map(found)).toEqual([
    [both],
    [both, one],
    [twice],
    [twice],
    [twice],
    [],
    [],
  ]);
  expect([both, one, twice].map((each) => index.remove(each))).toEqual(bytes);
  expect(["a", "b", "c", "7", "true"].flatMap(found)).toEqual([]);
});

test("an index leads through several lists, and finds numbers by their digits", () => {
  const index = new FieldIndex(["spec", "containers", eachItem, "ports", eachItem, "containerPort"]);
  const port = '{"containerPort":9007199254740993}';
  const pod = {
    body: Buffer.from(`{"spec":{"containers":[{"ports":[${port}]},{"ports":[{"containerPort":80}]},{}]}}`),
  };
  index.add(pod);
  for (const value of ["9007199254740993", "80"]) expect([...index.of(value)]).toEqual([pod]);
  expect([...index.of("9007199254740992")]).toEqual([]);
  const raw = new FieldIndex(["spec", "containers", eachItem, "ports", eachItem, "containerPort", "rawJSON"]);
  expect(raw.add(pod)).toBe(0);
});

test("an object with more values than an index takes is found under none, and counted as one entry", () => {
  const index = new FieldIndex(byOwner);
  const owned = (count: number) =>
    keptOf({ metadata: { ownerReferences: Array.from({ length: count }, (_, at) => ({ uid: `u${at}` })) } });
  const [most, more] = [owned(mostValues), owned(mostValues + 1)];
  index.add(most);
  const bytes = index.add(more);
  expect([...index.of("u0")]).toEqual([most]);
  expect([...index.crowded]).toEqual([more]);
  expect(bytes).toBeLessThan(1000);
  expect(index.remove(more)).toBe(bytes);
  expect([...index.crowded]).toEqual([]);
});

test("any JSON is indexed by the values that a walk over it finds", () => {
  fc.assert(
    fc.property(fc.json({ depthSize: "small" }), fc.constantFrom("a", "b"), (text, value) => {
      const object = { a: JSON.parse(text) as unknown };
      const index = new FieldIndex(["a", eachItem, "b"]);
      const kept = keptOf(object);
      index.add(kept);
      const items = Array.isArray(object.a) ? object.a : [];
      const values = items.flatMap((each) => (each && !Array.isArray(each) && Object.hasOwn(each, "b") ? each.b : []));
      expect([...index.of(value)].length > 0).toBe(values.includes(value));
      index.remove(kept);
      expect([...index.of(value)]).toEqual([]);
    }),
  );
});
