import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { YoungMap } from "../../runtime/v8/young-map.ts";

const becameOld = async (what: "map" | "line"): Promise<number> => {
  const program = join(import.meta.dirname, "transient.program.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--max-semi-space-size=1", program, what]);
  return JSON.parse(stdout);
};

describe("what comes and goes", () => {
  it.each(["map", "line"] as const)("is collected while it is young: of a %s", async (what) => {
    expect(await becameOld(what)).toBeLessThan(0.5);
  });

  it("is as in a Map, however often it empties", () => {
    const map = new YoungMap<string, number>();
    for (let round = 0; round < 100; round++) {
      map.set("a", round);
      map.set("b", round);
      expect([...map]).toEqual([
        ["a", round],
        ["b", round],
      ]);
      expect([map.get("a"), map.has("b"), map.has("c"), map.size]).toEqual([round, true, false, 2]);
      expect([map.delete("a"), map.delete("a"), map.delete("b")]).toEqual([true, false, true]);
      expect([...map.keys(), ...map.values()]).toEqual([]);
    }
  });
});
