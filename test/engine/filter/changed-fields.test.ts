import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FieldsDigest } from "../../../runtime/engine/filter/changed-fields.ts";
import { ObjectScanner } from "../../../runtime/informer/scan/object-scan.ts";
import { jsonTexts } from "./json-texts.ts";

const fields = [["a"], ["b", "a"], ["b", "ü"]] as const;

describe("the digest of changed fields", () => {
  it("is the same by their bytes as by parsing, whatever bytes were seen before", () => {
    const digest = new FieldsDigest(fields);
    fc.assert(
      fc.property(jsonTexts, (json) => {
        const parsed = new FieldsDigest(fields).of(json);
        const body = Buffer.from(json);
        const scanner = new ObjectScanner();
        const members = scanner.scan(body, 0, body.length) && json.startsWith("{") ? scanner.members(0) : undefined;
        expect([digest.ofBytes(body), digest.ofBytes(body), digest.ofBytes(body, members)]).toEqual([
          parsed,
          parsed,
          parsed,
        ]);
      }),
      { numRuns: 2_000 },
    );
  });

  it("of fields that were seen before parses nothing", () => {
    const digest = new FieldsDigest([["spec"]]);
    const large = "x".repeat(1_000);
    const first = digest.ofBytes(Buffer.from(`{"spec":{"n":1,"text":"${large}"},"status":1}`));
    expect(digest.ofBytes(Buffer.from(`{"status":2,"spec":{"n":1,"text":"${large}"}}`))).toBe(first);
    const { parse } = JSON;
    JSON.parse = () => {
      throw new Error("parsed");
    };
    try {
      expect(digest.ofBytes(Buffer.from(`{"status":3,"spec":{"n":1,"text":"${large}"}}`))).toBe(first);
    } finally {
      JSON.parse = parse;
    }
  });

  it("of fields in another order or with other spaces is the same, though their bytes are new", () => {
    const digest = new FieldsDigest([["spec"]]);
    const one = digest.ofBytes(Buffer.from(`{"spec":{"a":1,"b":2}}`));
    expect(digest.ofBytes(Buffer.from(`{"spec":{ "b" : 2, "a": 1 }}`))).toBe(one);
    expect(digest.ofBytes(Buffer.from(`{"spec":{"a":1,"b":3}}`))).not.toBe(one);
  });
});
