import { expect, test } from "vitest";
import { ServerWarnings } from "../../runtime/access/server-warnings.ts";
import { accessTo, everything } from "./api-server.ts";

test("each warning of an answer is reported once, with the function that was answered first", async () => {
  const warned: string[][] = [];
  const warnings = new ServerWarnings((...each) => warned.push(each));
  warnings.read("f", undefined);
  warnings.read("f", String.raw`299 - "unknown field \"a, b\"", 299 kube-apiserver "v1 is old" "Fri, 27 Nov 2026"`);
  warnings.read("g", [String.raw`299 - "unknown field \"a, b\""`, '299 - "line\u001b[2J"', "199 - odd", ""]);
  expect(warned.map(([name, text]) => [name, text])).toEqual([
    ["f", 'unknown field "a, b"'],
    ["f", "v1 is old"],
    ["g", expect.not.stringContaining("\u001b")],
  ]);
});

test("no more texts are remembered than a bound", () => {
  let count = 0;
  const warnings = new ServerWarnings(() => count++);
  for (let no = 0; no < 1100; no++) warnings.read("f", `299 - "no ${no}"`);
  expect(count).toBe(1000);
});

test("the answer to a call of ctx.kube is read for warnings, be it a success or a refusal", async () => {
  const warned: string[][] = [];
  const { call } = await accessTo({
    manifest: { permissions: [everything] },
    script: ({ path }) => ({
      status: path.endsWith("/bad") ? 422 : 200,
      headers: { warning: `299 - "about ${path.split("/").at(-1)}"` },
      body: {},
    }),
    warned: (...each) => warned.push(each),
  });
  for (const name of ["good", "bad", "good"])
    await call("kube.get", { ref: { apiVersion: "v1", kind: "ConfigMap", name, namespace: "demo" } });
  expect(warned).toEqual([
    ["f", "about good"],
    ["f", "about bad"],
  ]);
});
