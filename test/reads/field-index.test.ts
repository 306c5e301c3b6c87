import { expect, test } from "vitest";
import { FieldIndex } from "../../runtime/reads/field-index.ts";

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
