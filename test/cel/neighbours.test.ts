import { Environment } from "@marcbachmann/cel-js";
import { expect, it } from "vitest";
import { environment } from "../../runtime/cel/environment.ts";

it("what conditions may use is no other environment's of this process", () => {
  expect(environment.parse("object.a.find('x') == ''").check().valid).toBe(true);
  const other = new Environment({ enableOptionalTypes: true });
  expect(() => other.registerFunction("string.find(string): string", () => "")).not.toThrow();
});
