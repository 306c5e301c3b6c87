import { describe, expect, it } from "vitest";
import { Dice } from "../random.ts";
import { type Edit, edits, uneditable } from "./fields.ts";
import { manifestsOf, planOf } from "./plan.ts";
import { schemaPaths } from "./schema-paths.ts";
import { anySpec, readSpec, repair, type Spec } from "./spec.ts";

describe("the edits of the worlds", () => {
  it("are of every field of the manifest's schema, or there is a reason why it decides nothing that is told", () => {
    const covered = new Set([...edits.flatMap(({ paths }) => paths), ...Object.keys(uneditable)]);
    expect([...covered].sort()).toEqual(schemaPaths().sort());
  });

  it.each(edits.map((edit) => [edit.name, edit] as const))(
    "%s changes each of its fields in some valid manifest",
    (_, edit) => {
      const missing = new Set(edit.paths);
      for (let seed = 1; seed <= 400 && missing.size > 0; seed++) {
        for (const path of pathsThatDiffer(seed, edit)) missing.delete(path);
      }
      expect([...missing]).toEqual([]);
    },
  );

  it("lead to valid manifests alone", () => {
    const faults = Array.from({ length: 300 }, (_, seed) =>
      manifestsOf(planOf(seed)).map(({ spec }) => readSpec(spec)),
    );
    expect(faults.flat().filter((read) => typeof read === "string")).toEqual([]);
  });
});

function pathsThatDiffer(seed: number, edit: Edit): string[] {
  const dice = new Dice(seed);
  const before = anySpec(dice);
  // Some fields can be changed only if others are set.
  for (let times = dice.below(3); times > 0; times--) edited(before, edit, dice);
  const after = structuredClone(before);
  edited(after, edit, dice);
  if (typeof readSpec(after) === "string") return [];
  const [was, is] = [valuesOf({ spec: before }), valuesOf({ spec: after })];
  return edit.paths.filter((path) => JSON.stringify(was.get(path)) !== JSON.stringify(is.get(path)));
}

function edited(spec: Spec, edit: Edit, dice: Dice): void {
  edit.change(spec, dice);
  repair(spec, dice);
}

/** The values that a document has at each path of the schema. */
function valuesOf(value: unknown, path = "", found = new Map<string, unknown[]>()): Map<string, unknown[]> {
  if (Array.isArray(value)) for (const each of value) valuesOf(each, `${path}[]`, found);
  else if (value !== null && typeof value === "object") {
    const isMap = path.endsWith("matchLabels");
    for (const [name, each] of Object.entries(value)) {
      const next = isMap ? `${path}{}` : path === "" ? name : `${path}.${name}`;
      valuesOf(each, next, found);
    }
  } else if (value !== undefined) found.set(path, [...(found.get(path) ?? []), value]);
  return found;
}
