import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { IndexTrust } from "../../runtime/catalog/index-trust.ts";
import { TrustedKeys } from "../../runtime/catalog/signature.ts";

const root = mkdtempSync(join(tmpdir(), "watchfire-trust-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const key = join(root, "key.pem");
writeFileSync(key, generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }));

/** An IndexTrust with this record of the newest serial in its data folder; `undefined`: without a record. */
function trustOf(record: string | undefined): IndexTrust {
  const data = mkdtempSync(join(root, "data-"));
  if (record !== undefined) writeFileSync(join(data, "signed-serial"), record);
  return new IndexTrust({ keys: TrustedKeys.read([key]), namespace: "ns", account: "account", data });
}

test("a runtime that never saw a signed index says so", () => {
  expect([...trustOf(undefined).seen]).toEqual([]);
});

test("the newest serial is known after a restart, and another runtime's counts for nothing", () => {
  expect([...trustOf('{"audience":"ns/account","serial":7}').seen]).toEqual(["default"]);
  expect([...trustOf('{"audience":"other/account","serial":7}').seen]).toEqual([]);
});

test.each(["", "{", "[]", '{"audience":"ns/account","serial":-1}', '{"audience":"ns/account"}'])(
  "a damaged record does not let older functions back in: %j",
  (record) => {
    expect(() => trustOf(record)).toThrow(expect.objectContaining({ code: "WF_DEPLOYED_SERIAL" }));
  },
);
