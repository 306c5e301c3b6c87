import { Environment } from "@marcbachmann/cel-js";
import { expect, it } from "vitest";
import { CelEnvironment } from "../../runtime/cel/environment.ts";

it("the functions of an environment are no other environment's of this process", () => {
  const environment = new CelEnvironment({ object: "dyn" }, 1000);
  expect(environment.parse("object.a.find('x') == ''").type).toBe("bool");
  const other = new Environment({ enableOptionalTypes: true });
  expect(() => other.registerFunction("string.find(string): string", () => "")).not.toThrow();
});
