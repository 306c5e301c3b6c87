import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { systemReason } from "../base/wording.ts";

/** Limit of a key file, in bytes; a file of a hundred keys is smaller. */
const keyFileLimit = 64 * 1024;

/** Prefix of every signed message, so that nothing the key signs elsewhere can pass as a statement. */
const domain = "watchfire.dev/signature/v1";

/** Statement of a signature: this content is meant for that reader, and is newer than all content with a smaller serial. */
export interface Statement {
  /** Purpose of the content; a signature for one purpose is never accepted for another. */
  readonly purpose: "deployed-functions" | "deployed-canary" | "built-functions" | "deployed-revision";
  /** The reader: a runtime as `namespace/account`. Empty: every runtime that trusts the key. */
  readonly audience: string;
  /** Increases with each signature; a safe integer. */
  readonly serial: number;
  readonly content: string;
}

const signatureSchema = z.strictObject({
  version: z.literal(1),
  algorithm: z.literal("ed25519"),
  key: z.string().max(100),
  serial: z.int().min(0),
  signature: z.base64().max(100),
});

/** A private key that signs. */
export class SigningKey {
  private readonly key: KeyObject;
  /** The public half: trusting this means trusting what the key signs. */
  readonly trusted: TrustedKeys;

  private constructor(key: KeyObject) {
    this.key = key;
    this.trusted = TrustedKeys.of([createPublicKey(key)]);
  }

  /** Reads an ed25519 private key in PEM. @throws WatchfireError WF_DEPLOYED_KEY */
  static read(file: string): SigningKey {
    const [pem, ...more] = pemsOf(file);
    if (!pem || more.length > 0) throw keyFault(file, `it holds ${more.length + 1} keys; one signs`);
    if (/-BEGIN (?:PUBLIC KEY|CERTIFICATE)-/.test(pem))
      throw keyFault(file, "it holds no private key, which signing takes");
    if (pem.includes("-BEGIN ENCRYPTED ")) throw keyFault(file, "the key is encrypted", decrypt(file));
    return new SigningKey(ed25519(file, () => createPrivateKey(pem)));
  }

  /** Returns the signature's text: JSON on one line. */
  sign(statement: Statement): string {
    const signature = sign(null, messageOf(statement), this.key).toString("base64");
    const [key] = this.trusted.fingerprints;
    return `${JSON.stringify({ version: 1, algorithm: "ed25519", key, serial: statement.serial, signature })}\n`;
  }
}

/** Public keys, of which any one may have signed. */
export class TrustedKeys {
  private readonly keys: ReadonlyMap<string, KeyObject>;

  private constructor(keys: readonly KeyObject[]) {
    this.keys = new Map(keys.map((key) => [fingerprint(key), key]));
  }

  static of(keys: readonly KeyObject[]): TrustedKeys {
    return new TrustedKeys(keys);
  }

  /** Returns the keys of all of these; `undefined` if all are. */
  static any(several: readonly (TrustedKeys | undefined)[]): TrustedKeys | undefined {
    const given = several.filter((each) => each !== undefined);
    return given.length === 0 ? undefined : new TrustedKeys(given.flatMap(({ keys }) => [...keys.values()]));
  }

  /** Reads ed25519 public keys in PEM; a file may hold several. @throws WatchfireError WF_DEPLOYED_KEY */
  static read(files: readonly string[]): TrustedKeys {
    const keys = files.flatMap((file) =>
      pemsOf(file).map((pem) => {
        if (pem.includes("PRIVATE KEY-")) {
          const hint = `give its public half: openssl pkey -in ${file} -pubout -out watchfire.pub`;
          throw keyFault(file, "it holds a private key, which is not a runtime's to have", hint);
        }
        return ed25519(file, () => createPublicKey(pem));
      }),
    );
    return new TrustedKeys(keys);
  }

  /** Returns `SHA256:` and the hash of each key, as `signature.json` names it. */
  get fingerprints(): readonly string[] {
    return [...this.keys.keys()];
  }

  /** Returns the statement's serial if a trusted key signed it; otherwise the reason for refusing it. */
  verify(signature: string | undefined, statement: Omit<Statement, "serial">): number | { readonly why: string } {
    if (signature === undefined) return { why: "there is no signature" };
    const read = readSignature(signature);
    if (!read) return { why: "the signature cannot be read" };
    const key = this.keys.get(read.key);
    if (!key) return { why: `the signature is by the key ${read.key}; trusted: ${this.fingerprints.join(", ")}` };
    const message = messageOf({ ...statement, serial: read.serial });
    if (verify(null, message, key, Buffer.from(read.signature, "base64"))) return read.serial;
    return { why: "the signature is of other content, or for another runtime" };
  }
}

function readSignature(text: string): z.output<typeof signatureSchema> | undefined {
  try {
    return signatureSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Serialises a statement. Each part is preceded by its length, so that the boundaries are unambiguous. */
function messageOf({ purpose, audience, serial, content }: Statement): Buffer {
  const parts = [domain, purpose, audience, String(serial), content];
  return Buffer.from(parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(""), "utf8");
}

const fingerprint = (key: KeyObject): string =>
  `SHA256:${createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("base64url")}`;

function pemsOf(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw keyFault(file, `it cannot be read: ${systemReason(cause)}`, "name the key's file", cause);
  }
  if (text.length > keyFileLimit) throw keyFault(file, "it is too large to be a key");
  const pems = text.match(/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?-----END [A-Z0-9 ]+-----/g);
  if (!pems) throw keyFault(file, "it holds no key in PEM");
  return pems;
}

function ed25519(file: string, read: () => KeyObject): KeyObject {
  let key: KeyObject;
  try {
    key = read();
  } catch (cause) {
    throw keyFault(file, `its key cannot be read: ${(cause as Error).message}`, undefined, cause);
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw keyFault(file, `its key is of the type ${key.asymmetricKeyType}, not ed25519`);
  return key;
}

const decrypt = (file: string) => `decrypt it: openssl pkey -in ${file} -out watchfire.key`;

const keyFault = (file: string, what: string, hint?: string, cause?: unknown): WatchfireError =>
  new WatchfireError("WF_DEPLOYED_KEY", { what, place: { file }, ...(hint !== undefined && { hint }), cause });
