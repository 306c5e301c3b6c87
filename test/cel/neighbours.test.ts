import { Environment } from "@marcbachmann/cel-js";
import { expect, it } from "vitest";
import { dynamic } from "../../runtime/cel/declared-type.ts";
import { CelEnvironment } from "../../runtime/cel/environment.ts";

it("the functions of an environment are no other environment's of this process", () => {
  const environment = new CelEnvironment({ object: dynamic }, { longest: 1000, deepest: 100 });
  expect(environment.parse("object.a.find('x') == ''").type).toBe("bool");
  const other = new Environment({ enableOptionalTypes: true });
  expect(() => other.registerFunction("string.find(string): string", () => "")).not.toThrow();
});
