import { expect, test } from "vitest";
import { ChosenSource } from "../../runtime/catalog/chosen-source.ts";
import type { FunctionSet } from "../../runtime/catalog/function-source.ts";
import { manifestOf } from "../access/api-server.ts";

test("of a chosen function all is told, of others nothing, and nobody takes them for removed", async () => {
  const origin = { type: "folder", manifest: "f.yaml" } as const;
  const offer = (name: string) => ({
    manifest: { ...manifestOf(), name },
    origin,
    bundle: () => Promise.reject(new Error("not built")),
  });
  const refused = (name: string | undefined) => ({ name, file: "f.yaml", faults: [], origin });
  const set: FunctionSet = {
    functions: [offer("greet"), offer("other")],
    rejected: [refused("greet"), refused("other"), refused(undefined)],
    faults: [],
    complete: true,
  };
  const chosen = await new ChosenSource({ read: async () => set }, ["greet"]).read(new AbortController().signal);
  expect(chosen.functions.map(({ manifest }) => manifest.name)).toEqual(["greet"]);
  expect(chosen.rejected.map(({ name }) => name)).toEqual(["greet", undefined]);
  expect(chosen.complete).toBe(false);
});
