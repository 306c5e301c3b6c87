import { DOMException } from "./abort.guest.ts";

declare function require(specifier: string): unknown;

const libraries = () => require("./libraries.guest.ts") as typeof import("./libraries.guest.ts");

type Algorithm = string | { readonly name: string; readonly hash?: Algorithm };
type BytesSource = ArrayBuffer | ArrayBufferView;

/** Reads a key's bytes. Not a method, because a handler has access to the class. */
let keyBytes: (key: CryptoKey) => Uint8Array;

/** A key for HMAC. A handler cannot read its bytes unless it is extractable. */
export class CryptoKey {
  readonly type = "secret";
  readonly extractable: boolean;
  readonly algorithm: { readonly name: "HMAC"; readonly hash: { readonly name: string }; readonly length: number };
  readonly usages: readonly string[];
  #bytes: Uint8Array;

  constructor(bytes: Uint8Array, hash: string, extractable: boolean, usages: readonly string[]) {
    this.#bytes = bytes;
    this.extractable = extractable;
    this.algorithm = { name: "HMAC", hash: { name: hash }, length: bytes.length * 8 };
    this.usages = usages;
  }

  static {
    keyBytes = (key) => key.#bytes;
  }
}

const nameOf = (algorithm: Algorithm | undefined): string =>
  String(typeof algorithm === "object" ? algorithm.name : algorithm).toUpperCase();

function hashOf(name: string) {
  const sha2 = libraries().sha2();
  if (name === "SHA-256") return sha2.sha256;
  if (name === "SHA-384") return sha2.sha384;
  if (name === "SHA-512") return sha2.sha512;
  if (name === "SHA-1") return libraries().legacy().sha1;
  throw new DOMException(
    `there is no digest ${name} here; use SHA-256, SHA-384, SHA-512 or SHA-1`,
    "NotSupportedError",
  );
}

/** Returns a copy, as in the standard, so that later changes of the handler's buffer have no effect. */
function bytesOf(source: BytesSource): Uint8Array {
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice();
  }
  if (Object.prototype.toString.call(source) === "[object ArrayBuffer]") return new Uint8Array(source).slice();
  throw new TypeError("expected an ArrayBuffer, a typed array or a DataView");
}

/** Returns an unshared buffer, because the library's results may be part of a larger one. */
const bufferOf = (bytes: Uint8Array): ArrayBuffer => bytes.slice().buffer as ArrayBuffer;

function mac(key: CryptoKey, algorithm: Algorithm, usage: string, data: BytesSource): Uint8Array {
  if (nameOf(algorithm) !== "HMAC") throw new DOMException("HMAC is the one algorithm here", "NotSupportedError");
  if (!key.usages.includes(usage)) throw new DOMException(`the key is not for ${usage}`, "InvalidAccessError");
  const { hmac } = libraries().hmac();
  return hmac(hashOf(key.algorithm.hash.name), keyBytes(key), bytesOf(data));
}

/** `crypto.subtle`: digests, and HMAC with raw keys, which webhooks are signed with. */
export const subtle = {
  async digest(algorithm: Algorithm, data: BytesSource): Promise<ArrayBuffer> {
    return bufferOf(hashOf(nameOf(algorithm))(bytesOf(data)));
  },

  async importKey(
    format: string,
    data: BytesSource,
    algorithm: Algorithm,
    extractable: boolean,
    usages: Iterable<string>,
  ) {
    if (format !== "raw" || nameOf(algorithm) !== "HMAC") {
      throw new DOMException("only raw keys for HMAC can be imported", "NotSupportedError");
    }
    const hash = nameOf((algorithm as { hash?: Algorithm }).hash);
    hashOf(hash);
    const allowed = [...usages];
    if (allowed.length === 0 || allowed.some((usage) => usage !== "sign" && usage !== "verify")) {
      throw new DOMException("an HMAC key is for sign, verify or both", "SyntaxError");
    }
    const bytes = bytesOf(data);
    if (bytes.length === 0) throw new DOMException("the key is empty", "DataError");
    return new CryptoKey(bytes, hash, Boolean(extractable), allowed);
  },

  async exportKey(format: string, key: CryptoKey): Promise<ArrayBuffer> {
    if (format !== "raw") throw new DOMException("only raw keys can be exported", "NotSupportedError");
    if (!key.extractable) throw new DOMException("the key is not extractable", "InvalidAccessError");
    return bufferOf(keyBytes(key));
  },

  async sign(algorithm: Algorithm, key: CryptoKey, data: BytesSource): Promise<ArrayBuffer> {
    return bufferOf(mac(key, algorithm, "sign", data));
  },

  /** Takes the same time wherever the first difference is. */
  async verify(algorithm: Algorithm, key: CryptoKey, signature: BytesSource, data: BytesSource): Promise<boolean> {
    const wanted = mac(key, algorithm, "verify", data);
    const given = bytesOf(signature);
    let difference = wanted.length ^ given.length;
    for (let at = 0; at < wanted.length; at++) difference |= (wanted[at] as number) ^ (given[at] ?? 0);
    return difference === 0;
  },
};
