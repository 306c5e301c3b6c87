import { randomBytes } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { bundleOf } from "../../runtime/bundle/script-bundle.ts";
import { readConfigMap } from "../../runtime/catalog/config-map.ts";
import { openFunction } from "../../runtime/catalog/opened-function.ts";
import { packFunction, unpackFunction } from "../../runtime/catalog/packed-function.ts";

const options = { account: "watchfire", namespace: "default", root: "/project" };
const map = (...sources: string[]) => JSON.stringify({ version: 3, sources, sourcesContent: sources, mappings: "" });
const manifest = `
apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ../../../etc/shadow.ts
  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap } }]
`;
const script = "__watchfire_accept(() => {});\n;undefined";
const packed = packFunction("greet", manifest, bundleOf(script, map("/project/functions/greet/handler.ts")), options);
const asRead = (configMap: unknown = packed.configMap) => {
  const read = readConfigMap(JSON.parse(JSON.stringify(configMap)));
  if (!read) throw new Error("no ConfigMap");
  return read;
};
const entry = { name: "greet", configMap: packed.configMap.metadata.name, sha256: packed.sha256 };

test("what is packed comes out as it went in, with its files named from the project's root and without their text", () => {
  const parts = unpackFunction(asRead());
  expect([parts.manifest, parts.script, parts.sha256]).toEqual([manifest, script, packed.sha256]);
  expect(JSON.parse(parts.sourceMap)).toEqual({ version: 3, sources: ["functions/greet/handler.ts"], mappings: "" });
});

test("a function is opened without a look at any file, and its code is what its hash says", async () => {
  const opened = openFunction(entry, asRead());
  if (opened.type !== "offer") throw new Error(opened.rejected.faults[0]?.message);
  expect(await opened.offer.bundle()).toMatchObject({ script, inputs: [], usesOldObject: false });
});

test("any change of any part is noticed", () => {
  const gzipped = (text: string) => gzipSync(text).toString("base64");
  const { data, binaryData } = asRead();
  const changes = [
    { data: { ...data, "function.yaml": `${manifest} ` } },
    { binaryData: { ...binaryData, "handler.js.gz": gzipped(`${script} `) } },
    { binaryData: { ...binaryData, "handler.js.map.gz": gzipped("{}") } },
    { binaryData: { "handler.js.gz": binaryData["handler.js.gz"] } },
    { binaryData: {} },
    { binaryData: { ...binaryData, "handler.js.gz": "bm8gZ3ppcA==" } },
    { data: {} },
  ];
  for (const change of changes) {
    expect(openFunction(entry, asRead({ ...packed.configMap, ...change })).type).toBe("damaged");
  }
  expect(openFunction(entry, undefined).type).toBe("damaged");
});

test("a part cannot pass for the end of another", () => {
  const shifted = packFunction("greet", manifest + script[0], bundleOf(script.slice(1), map()), options);
  expect(shifted.sha256).not.toBe(packed.sha256);
});

test("what unfolds to more than code can be is refused before it has", () => {
  const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20)).toString("base64");
  const before = process.memoryUsage.rss();
  const hostile = { ...packed.configMap, binaryData: { "handler.js.gz": bomb } };
  expect(() => unpackFunction(asRead(hostile))).toThrow(/^WF_DEPLOYED_DAMAGED .*handler\.js\.gz cannot be unpacked/);
  expect(process.memoryUsage.rss() - before).toBeLessThan(48 * 2 ** 20);
});

test("code that fits only without its source map goes without it; code that does not fit is refused with its size", () => {
  const random = (bytes: number) => randomBytes(bytes).toString("base64");
  const noise = bundleOf(
    `"${random(700_000)}"`,
    JSON.stringify({ version: 3, sources: [], mappings: random(500_000) }),
  );
  const made = packFunction("greet", manifest, noise, options);
  expect([made.withoutSourceMap, made.bytes < 2 ** 20]).toEqual([true, true]);
  const more = bundleOf(`"${random(1_100_000)}"`, map());
  expect(() => packFunction("greet", manifest, more, options)).toThrow(
    /^WF_DEPLOYED_TOO_LARGE: the function greet is too large \(\d+ KiB packed, 1433 KiB of code\); a ConfigMap takes 1024 KiB/,
  );
});

/** A source map of seven megabytes that fits into a small ConfigMap. */
const vast = (lines = 7_000_000) => JSON.stringify({ version: 3, sources: ["a.ts"], mappings: ";".repeat(lines) });

test("of many functions with vast source maps only a few maps are kept unpacked", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const one = packFunction("greet", manifest, bundleOf(script, vast()), options);
  const of = { name: "greet", configMap: one.configMap.metadata.name, sha256: one.sha256 };
  const configMap = asRead(one.configMap);
  const before = heap();
  const opened = Array.from({ length: 20 }, () => openFunction(of, configMap));
  expect(heap() - before).toBeLessThan(20 * 2 ** 20);
  expect(new Set(opened.map(({ type }) => type))).toEqual(new Set(["offer"]));
});

test("a source map that unfolds to more than eight megabytes is left out, and refused from whoever sends it", () => {
  const made = packFunction("greet", manifest, bundleOf(script, vast(9_000_000)), options);
  expect(made.withoutSourceMap).toBe(true);
  const { binaryData } = asRead();
  const sent = {
    ...packed.configMap,
    binaryData: { ...binaryData, "handler.js.map.gz": gzipSync(vast(9_000_000)).toString("base64") },
  };
  expect(() => unpackFunction(asRead(sent))).toThrow(/^WF_DEPLOYED_DAMAGED .*handler\.js\.map\.gz cannot be unpacked/);
});
