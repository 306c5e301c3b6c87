import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { importedFrom, literalCalls, triggerTypes } from "../../runtime/types/handler-text.ts";

describe("the literal calls of a handler", () => {
  it("are those whose apiVersion and kind are written in place, with their lines", () => {
    const source = `
const a = await kube.get<Shop>({ kind: 'Shop', apiVersion: \`shop.example/v1\`, name });
  ctx.kube.list({ apiVersion: "v1", kind: "Pod", namespace: "a" }); ctx.kube
    .create({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: "inner" } });
ctx.kube.get({ apiVersion, kind: "Pod" });
ctx.kube.get({ apiVersion: "v1", kind: kind });
ctx.kube.get({ apiVersion: \`\${group}/v1\`, kind: "Pod" });
ctx.kube.get(ref);
ctx.kube.apply({ apiVersion: "v1", kind: "Pod", spec: { namespace: "no" }, metadata: { namespace: "unseen" } });
`;
    expect(literalCalls(source)).toEqual([
      { method: "get", apiVersion: "shop.example/v1", kind: "Shop", line: 2, column: 17 },
      { method: "list", apiVersion: "v1", kind: "Pod", namespace: "a", line: 3, column: 7 },
      { method: "create", apiVersion: "v1", kind: "ConfigMap", namespace: "inner", line: 3, column: 73 },
      { method: "apply", apiVersion: "v1", kind: "Pod", line: 9, column: 5 },
    ]);
  });

  it("are none in comments, and a text that looks like a comment hides none", () => {
    const call = 'kube.get({ apiVersion: "v1", kind: "Pod" });';
    expect(literalCalls(`/* ${call}\n${call} */ // ${call}\n`)).toEqual([]);
    for (const text of ['"/*"', "'//'", "`/* a //`", '"\\"/*"']) {
      expect(literalCalls(`const a = ${text}; ${call}`)).toHaveLength(1);
    }
  });
});

describe("the types of a handler's triggers", () => {
  it("are the members of Triggers, whatever stands within them", () => {
    const source = `defineHandler<
  Triggers<{
    // old: V1Pod;
    shops: Shop<{ a: string; b: number }>; readonly "two-words": V1Pod,
    own: { shops: V1Secret; list: [V1Pod, V1Node] }
    nightly?: Scheduled
  }>
>((event) => {});`;
    expect(triggerTypes(source).map(({ trigger, type, line }) => `${line} ${trigger} ${type}`)).toEqual([
      "4 shops Shop",
      "4 two-words V1Pod",
      "6 nightly Scheduled",
    ]);
  });

  it("are not guessed where the text cannot be followed", () => {
    for (const source of ["Triggers<All>", "Triggers<{ a: V1Pod", "Triggers<{ a: () => V1Pod; b: V1Pod }>", ""]) {
      expect(triggerTypes(source)).toEqual([]);
    }
  });
});

it("imports are told by their module, and renamed ones are left out", () => {
  const source = `import { a, type B, c as d } from "m";\nimport type {\n  E,\n} from 'm';\n// import { f } from "m"\nimport { g } from "n";`;
  expect([...importedFrom(source, "m")]).toEqual(["a", "B", "E"]);
});

it("any text is read, and a long one in time", () => {
  const parts = fc.constantFrom(
    "/*",
    "*/",
    "//",
    '"',
    "'",
    "`",
    "\\",
    "\n",
    "kube.get(",
    "{",
    "}",
    "Triggers<{",
    "a: B;",
  );
  const read = (source: string) => [literalCalls(source), triggerTypes(source), importedFrom(source, "m")];
  fc.assert(
    fc.property(
      fc.array(parts).map((each) => each.join("")),
      (source) => void read(source),
    ),
  );
  const from = performance.now();
  for (const part of [
    "/*",
    '"',
    "`",
    "kube.get<",
    "kube . ",
    "kube.get({",
    "import {",
    "Triggers<{",
    "a: {",
    "//",
    "'\\",
  ])
    read(part.repeat(100_000));
  expect(performance.now() - from).toBeLessThan(10_000);
});
