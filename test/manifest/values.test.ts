// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readManifests } from "../../runtime/manifest/read.ts";
import { ManifestValues } from "../../runtime/manifest/values.ts";

const read = (text: string) => ManifestValues.read(text, "stage.yaml");

/** The text of a manifest that was filled without a fault. */
function fill(text: string, values: string): string {
  const filled = read(values).fill(text, "function.yaml");
  expect(filled.faults).toEqual([]);
  return filled.text;
}

const messages = (text: string, values: string) =>
  read(values)
    .fill(text, "function.yaml")
    .faults.map(({ message }) => message);

const refusal = (text: string): string => {
  try {
    read(text);
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

describe("a placeholder", () => {
  it("alone and without quotes becomes the value with its type, however large", () => {
    const text = "a: ${one}\nb: ${two}\nc: ${yes}\nd: ${list}\ne: ${map}\nf: ${big}\n";
    const values = 'one: 4\ntwo: "4"\nyes: true\nlist: [a, 9007199254740993]\nmap: { a: 1 }\nbig: 9007199254740993\n';
    expect(parse(fill(text, values), { intAsBigInt: true })).toEqual({
      a: 4n,
      b: "4",
      c: true,
      d: ["a", 9007199254740993n],
      e: { a: 1n },
      f: 9007199254740993n,
    });
  });

  it("in quotes, or as a part of a text, becomes text, with numbers as they are written", () => {
    const text = 'a: "${n}"\nb: v${n}\nc: { d: "https://${host}:${n}/" }\ne: [\'${n}\']\n';
    expect(parse(fill(text, "n: 1.10\nhost: example.com\n"))).toEqual({
      a: "1.10",
      b: "v1.10",
      c: { d: "https://example.com:1.10/" },
      e: ["1.10"],
    });
  });

  it("cannot break out of its place, whatever the value contains", () => {
    const value = '"\n}: # \u0085\u2028 ${n} $${n}';
    const values = `n: ${JSON.stringify(value)}\n`;
    const filled = fill("a: ${n}\nb: x${n}\n", values);
    expect(parse(filled)).toEqual({ a: value, b: `x${value}` });
    // YAML 1.1 takes these for line breaks.
    expect(filled).not.toMatch(/[\u0085\u2028]/);
  });

  it("is written as text with a second $, and in comments it is not filled", () => {
    expect(parse(fill("a: $${n} ${n} $$ $n ${n} # ${other}\n", "n: 1\n"))).toEqual({ a: "${n} 1 $$ $n 1" });
  });

  it("in a text of several lines leaves the lines below it in their places", () => {
    const text = "a: |\n  one ${n}\n\n  two\nb:\n  folded\n  ${n}\nc: last\n";
    const filled = fill(text, "n: 1\n");
    expect(parse(filled)).toEqual({ a: "one 1\n\ntwo\n", b: "folded 1", c: "last" });
    expect(filled.split("\n").indexOf("c: last")).toBe(text.split("\n").indexOf("c: last"));
  });

  it("is filled in every document of a file", () => {
    expect(fill("a: ${n}\n---\nb: ${n}\n", "n: 1\n")).toBe("a: 1\n---\nb: 1\n");
  });
});

describe("a mistake is refused with file, line and column:", () => {
  it("a name without a value, with the name that is meant", () => {
    expect(messages("a:\n  b: x-${hots}\nc: ${other}\n", "host: a\n")).toEqual([
      "WF_MANIFEST_VALUE_UNKNOWN function.yaml:2:6: there is no value for ${hots}; did you mean ${host}?",
      expect.stringMatching(/^WF_MANIFEST_VALUE_UNKNOWN function\.yaml:3:4: there is no value for \$\{other\}; add it/),
    ]);
  });

  it("a value that no manifest uses", () => {
    const values = read("host: a\n\nport: 1\n");
    expect(values.fill("a: ${host} $${port}\n", "function.yaml").faults).toEqual([]);
    expect(values.unused().map(({ message }) => message)).toEqual([
      expect.stringMatching(/^WF_MANIFEST_VALUE_UNUSED stage\.yaml:3:1: no manifest has \$\{port\}/),
    ]);
  });

  it("a list as a part of a text, a placeholder in a field's name, and one that is none", () => {
    expect(messages("a: x${list}\n${n}: b\nc: ${n\nd: ${ n }\n", "n: 1\nlist: [a]\n")).toEqual([
      expect.stringMatching(/^WF_MANIFEST_VALUE_INVALID function\.yaml:1:4: \$\{list\} is a list or a map/),
      expect.stringMatching(/^WF_MANIFEST_VALUE_INVALID function\.yaml:2:1: a name of a field/),
      expect.stringMatching(
        /^WF_MANIFEST_VALUE_INVALID function\.yaml:3:4: \$\{n is not a placeholder; .*write \$\$\{n/,
      ),
      expect.stringMatching(/^WF_MANIFEST_VALUE_INVALID function\.yaml:4:4: \$\{ n \} is not a placeholder/),
    ]);
  });

  it("a value of the wrong type for its field, at the field", () => {
    const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ./handler.ts
  triggers:
    - watch: { apiVersion: v1, kind: ConfigMap }
  delivery:
    concurrency: \${workers}
`;
    const faultsWith = (workers: string) => {
      const { text } = read(`workers: ${workers}\n`).fill(manifest, "function.yaml");
      return readManifests(text, "function.yaml", undefined).flatMap(({ faults }) =>
        faults.map(({ message }) => message),
      );
    };
    expect(faultsWith("8")).toEqual([]);
    expect(faultsWith("many")).toEqual([
      expect.stringMatching(/^WF_MANIFEST_WRONG_TYPE function\.yaml:9:18 spec\.delivery\.concurrency: .*"many"/),
    ]);
  });

  it("a file of values that is no map of names to values", () => {
    expect(refusal("- a\n")).toMatch(/^WF_MANIFEST_VALUE_INVALID stage\.yaml:1:1: the file is not a single map/);
    expect(refusal("a: 1\n---\nb: 2\n")).toMatch(
      /^WF_MANIFEST_VALUE_INVALID stage\.yaml:3:1: the file is not a single map/,
    );
    expect(refusal("")).toMatch(/^WF_MANIFEST_VALUE_INVALID stage\.yaml/);
    expect(refusal("a: [\n")).toMatch(/^WF_MANIFEST_SYNTAX stage\.yaml:/);
    expect(refusal("a: 1\na: 2\n")).toMatch(/^WF_MANIFEST_SYNTAX stage\.yaml:2:1/);
    expect(refusal("a: 1\nb c: 2\nd:\n")).toMatch(
      /^WF_MANIFEST_VALUE_INVALID stage\.yaml:2:1: the name "b c" .*1 more/,
    );
    expect(refusal("a: 1\nd:\n")).toMatch(/^WF_MANIFEST_VALUE_INVALID stage\.yaml:2:1: d has no value/);
  });
});

it("the page's example is a valid manifest with the page's values", () => {
  const page = readFileSync(join(import.meta.dirname, "../../runtime/docs/values.md"), "utf8");
  const [, values = ""] = /```\n# stage\.yaml\n([\s\S]*?)```/.exec(page) ?? [];
  const [, spec = ""] = /```\n# part of .*\nspec:\n([\s\S]*?)```/.exec(page) ?? [];
  const head = "apiVersion: watchfire.dev/v1alpha1\nkind: Function\nmetadata: { name: notify }\nspec:\n";
  const given = read(values);
  const { text, faults } = given.fill(`${head}  handler: ./handler.ts\n${spec}`, "function.yaml");
  expect([faults, given.unused()]).toEqual([[], []]);
  const [manifest] = readManifests(text, "function.yaml", undefined);
  expect(manifest?.faults).toEqual([]);
  expect(manifest?.manifest?.delivery.concurrency).toBe(2);
  const places = given.uses.map(
    ({ name, place }) => `filled \${${name}} at functions/notify/function.yaml:${place.line}:${place.column} `,
  );
  for (const place of places) expect(page).toContain(place);
});
