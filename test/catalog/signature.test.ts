import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { SigningKey, type Statement, TrustedKeys } from "../../runtime/catalog/signature.ts";

const folder = mkdtempSync(join(tmpdir(), "watchfire-keys-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let number = 0;
function file(...texts: readonly string[]): string {
  const name = join(folder, `${++number}.pem`);
  writeFileSync(name, texts.join("\n"));
  return name;
}
const pem = (key: KeyObject): string =>
  key.export({ type: key.type === "private" ? "pkcs8" : "spki", format: "pem" }) as string;

const ours = generateKeyPairSync("ed25519");
const theirs = generateKeyPairSync("ed25519");
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = SigningKey.read(file(pem(ours.privateKey)));
const trusted = TrustedKeys.read([file(pem(ours.publicKey))]);

const statement: Statement = { purpose: "deployed-functions", audience: "ns/account", serial: 7, content: "a\n" };

test("a signature counts for what was signed, and gives its serial", () => {
  expect(trusted.verify(key.sign(statement), statement)).toBe(7);
});

test("a signature counts for no other purpose, audience or content", () => {
  const text = fc.oneof(fc.string(), fc.constantFrom("ns/account", "a\n", ""));
  const purpose = fc.constantFrom("deployed-functions" as const, "built-functions" as const);
  const serial = fc.nat();
  const one = fc.record({ purpose, audience: text, serial, content: text });
  fc.assert(
    fc.property(one, one, (signed, read) => {
      const same =
        signed.purpose === read.purpose && signed.audience === read.audience && signed.content === read.content;
      expect(trusted.verify(key.sign(signed), read)).toEqual(same ? signed.serial : { why: expect.any(String) });
    }),
  );
});

test("a text moved from one field to the next is another statement", () => {
  const signature = key.sign({ ...statement, audience: "ab", content: "c" });
  expect(trusted.verify(signature, { ...statement, audience: "a", content: "bc" })).toHaveProperty("why");
});

test("a later serial cannot be written into a signature", () => {
  const forged = key.sign(statement).replace('"serial":7', '"serial":8');
  expect(trusted.verify(forged, statement)).toEqual({ why: expect.stringContaining("other content") });
});

test("what cannot be read is no signature, and nothing throws", () => {
  expect(trusted.verify(undefined, statement)).toEqual({ why: "there is no signature" });
  const parts = fc.record({
    version: fc.constantFrom(1, 2),
    algorithm: fc.constantFrom("ed25519", "none"),
    key: fc.constantFrom(...trusted.fingerprints, "x"),
    serial: fc.oneof(fc.nat(), fc.double(), fc.constant("7")),
    signature: fc.oneof(fc.base64String(), fc.string()),
  });
  const text = fc.oneof(
    fc.string(),
    fc.json(),
    parts.map((value) => JSON.stringify(value)),
  );
  fc.assert(fc.property(text, (each) => typeof trusted.verify(each, statement) !== "number"));
});

test("a key that is not trusted signs nothing, and both are named", () => {
  const other = SigningKey.read(file(pem(theirs.privateKey)));
  const { why } = trusted.verify(other.sign(statement), statement) as { why: string };
  expect(why).toContain(other.trusted.fingerprints[0]);
  expect(why).toContain(trusted.fingerprints[0]);
});

test("of several trusted keys each counts, in one file or in several", () => {
  const other = SigningKey.read(file(pem(theirs.privateKey)));
  const pems = [ours.publicKey, theirs.publicKey].map(pem);
  for (const both of [TrustedKeys.read([file(...pems)]), TrustedKeys.read(pems.map((each) => file(each)))]) {
    for (const signer of [key, other]) expect(both.verify(signer.sign(statement), statement)).toBe(7);
  }
});

const encrypted = ours.privateKey.export({
  type: "pkcs8",
  format: "pem",
  cipher: "aes-256-cbc",
  passphrase: "x",
}) as string;

test.each<[string, () => unknown, RegExp]>([
  ["no file", () => SigningKey.read(join(folder, "none")), /none: it cannot be read: .*; name the key's file/],
  [
    "an empty file",
    () => TrustedKeys.read([file("")]),
    /it holds no key in PEM; make one with `openssl genpkey -algorithm ed25519/,
  ],
  ["a broken key", () => SigningKey.read(file(pem(ours.privateKey).replace(/\n./, "\n!"))), /its key cannot be read: /],
  ["an RSA key to sign", () => SigningKey.read(file(pem(rsa.privateKey))), /its key is of the type rsa, not ed25519/],
  [
    "an RSA key to trust",
    () => TrustedKeys.read([file(pem(rsa.publicKey))]),
    /its key is of the type rsa, not ed25519/,
  ],
  [
    "a public key to sign",
    () => SigningKey.read(file(pem(ours.publicKey))),
    /it holds no private key, which signing takes/,
  ],
  [
    "two keys to sign",
    () => SigningKey.read(file(pem(ours.privateKey), pem(theirs.privateKey))),
    /it holds 2 keys; one signs/,
  ],
  ["an encrypted key", () => SigningKey.read(file(encrypted)), /the key is encrypted; decrypt it: openssl pkey -in /],
  [
    "a private key to trust",
    () => TrustedKeys.read([file(pem(ours.privateKey))]),
    /it holds a private key, .*; give its public half: openssl pkey .* -pubout/,
  ],
])("%s is refused with a code, the file and what to do, and shows nothing of the key", (_, read, words) => {
  const secret = pem(ours.privateKey).split("\n")[1] ?? "";
  try {
    read();
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(WatchfireError);
    expect((error as WatchfireError).message).toMatch(/^WF_DEPLOYED_KEY \S+\.?\S*: /);
    expect((error as WatchfireError).message).toMatch(words);
    expect((error as WatchfireError).message).not.toContain(secret.slice(20));
  }
});
