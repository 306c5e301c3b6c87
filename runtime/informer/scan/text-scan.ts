import * as layout from "./wasm/layout.ts";
import { compiled } from "./wasm/scanner.compiled.ts";

/** The part of WebAssembly that is used here, for which the types of Node have no names. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => CompiledModule;
  readonly Instance: new (module: CompiledModule) => { readonly exports: unknown };
};
type CompiledModule = object;

/** Exports of the module. */
interface Scanner {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): void };
  scan(start: number, end: number, isLine: number): number;
}

const fieldNames: readonly (readonly [field: number, name: string])[] = [
  [layout.typeField, "type"],
  [layout.objectField, "object"],
  [layout.kindField, "kind"],
  [layout.apiVersionField, "apiVersion"],
  [layout.metadataField, "metadata"],
  [layout.nameField, "name"],
  [layout.namespaceField, "namespace"],
  [layout.uidField, "uid"],
  [layout.resourceVersionField, "resourceVersion"],
  [layout.annotationsField, "annotations"],
  [layout.managedFieldsField, "managedFields"],
];

/**
 * Longest text in the shared memory, in bytes. Longer texts get a separate instance, because a memory never shrinks. etcd refuses
 * objects over 1.5 MiB, so few are longer. Pages that were never written take no memory.
 */
export const usualText = 2 * 1024 * 1024;
const pageBytes = 65_536;

/** An instance of the module, and the words of its memory that hold the results. */
class Instance {
  readonly words: Int32Array;
  private readonly bytes: Buffer;
  private readonly exports: Scanner;

  constructor(module: CompiledModule, mostText: number) {
    this.exports = new WebAssembly.Instance(module).exports as Scanner;
    const { memory } = this.exports;
    const mostCuts = Math.ceil(mostText / layout.leastCut) * layout.cutWords * 4;
    const pages = Math.ceil((layout.text + mostText + layout.textMargin * 2 + mostCuts) / pageBytes);
    memory.grow(Math.max(0, pages - memory.buffer.byteLength / pageBytes));
    this.bytes = Buffer.from(memory.buffer);
    this.words = new Int32Array(memory.buffer);
    for (const [field, name] of fieldNames) {
      const at = layout.names + field * layout.nameBytes;
      this.bytes.write(name, at, "latin1");
      this.bytes[at + layout.nameBytes - 1] = name.length;
    }
  }

  scan(bytes: Buffer, start: number, end: number, isEvent: boolean): boolean {
    bytes.copy(this.bytes, layout.text, start, end);
    return this.exports.scan(start, end, isEvent ? 1 : 0) === 1;
  }
}

let module: CompiledModule | undefined;
let usual: Instance | undefined;

/**
 * Checks that the text is one well-formed JSON object, surrounded by white space at most, and locates its fields.
 * @returns words laid out as in `wasm/layout.ts`, with indexes into `bytes`; `undefined` if the text is not well formed. The next
 * scan overwrites them: copy them to keep them.
 */
export function scanText(bytes: Buffer, start: number, end: number, what: "event" | "object"): Int32Array | undefined {
  module ??= new WebAssembly.Module(Buffer.from(compiled, "base64"));
  usual ??= new Instance(module, usualText);
  const instance = end - start > usualText ? new Instance(module, end - start) : usual;
  return instance.scan(bytes, start, end, what === "event") ? instance.words : undefined;
}

/** The first byte of every object that an API server sends. */
export const openBrace = 0x7b;

/** Whether the byte is white space between JSON's tokens (RFC 8259, section 2). */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Returns the first index from `from` on without white space; the length if there is only white space. */
export function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isSpace(bytes[at] as number)) at++;
  return at;
}
