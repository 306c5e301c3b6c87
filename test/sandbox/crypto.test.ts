import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { fixtureForTest } from "./fixture.ts";

const text = "a body as long as a webhook's, beyond one block of any digest: ".repeat(5);
const hex = "const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, '0')).join('');";

describe("crypto.subtle", () => {
  it("gives the digests that Node gives", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `${hex} export default async (e, ctx) => {
        const bytes = new TextEncoder().encode(e.object.text);
        for (const name of ["SHA-1", "SHA-256", { name: "sha-384" }, "SHA-512"]) ctx.log.info(hex(await crypto.subtle.digest(name, bytes)));
      };`,
    );
    expect((await fixture.run("f", { body: Buffer.from(JSON.stringify({ text })) })).type).toBe("ok");
    expect(fixture.logs.map((line) => line.message)).toEqual(
      ["sha1", "sha256", "sha384", "sha512"].map((name) => createHash(name).update(text).digest("hex")),
    );
  });

  it("signs with HMAC as Node does, and verifies nothing but that", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `${hex} export default async (e, ctx) => {
        const encode = (t) => new TextEncoder().encode(t);
        const key = await crypto.subtle.importKey("raw", encode("secret"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
        const signature = await crypto.subtle.sign("HMAC", key, encode(e.object.text));
        const forged = new Uint8Array(signature.slice(0)); forged[31] ^= 1;
        const verify = (s, t) => crypto.subtle.verify("HMAC", key, s, encode(t));
        const hidden = await crypto.subtle.exportKey("raw", key).catch((error) => error.name);
        const other = await crypto.subtle.importKey("raw", encode("k"), { name: "AES-GCM" }, false, ["encrypt"]).catch((error) => error.name);
        ctx.log.info([hex(signature), await verify(signature, e.object.text), await verify(forged, e.object.text),
          await verify(signature, "other"), await verify(signature.slice(0, 16), e.object.text), hidden, other].join());
      };`,
    );
    expect((await fixture.run("f", { body: Buffer.from(JSON.stringify({ text })) })).type).toBe("ok");
    const wanted = createHmac("sha256", "secret").update(text).digest("hex");
    expect(fixture.logs[0]?.message).toBe(`${wanted},true,false,false,false,InvalidAccessError,NotSupportedError`);
  });

  it("keeps a key that is not extractable from the handler, by whatever of the key's class it reaches", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default async () => {
        const key = await crypto.subtle.importKey("raw", new Uint8Array([1, 2, 3]), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
        for (const name of Reflect.ownKeys(CryptoKey)) {
          let found;
          try { found = CryptoKey[name](key); } catch {}
          if (found instanceof Uint8Array) throw new Error("by " + String(name));
        }
      };`,
    );
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
  });
});

describe("an isolate", () => {
  it("gets its random numbers' key whatever the module did to the language's own functions", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `const bad = () => { throw new Error("polluted"); };
      String.prototype.slice = bad; Number.parseInt = bad;
      export default () => crypto.getRandomValues(new Uint8Array(8));`,
    );
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
  });
});
