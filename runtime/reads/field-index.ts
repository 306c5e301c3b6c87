import { parseExactly, textOfNumber } from "../base/exact-json.ts";
import { RawFields } from "../engine/filter/raw-fields.ts";

/** Bytes that one value of one object takes in an index, in addition to its text: an entry of a map and one of a set. */
const valueOverhead = 128;

/** Index of objects by the values of one field. */
export class FieldIndex<Kept extends { readonly body: Buffer }> {
  private readonly path: readonly string[];
  private readonly fields: RawFields;
  private readonly byValue = new Map<string, Set<Kept>>();

  /** @param path the field's segments, outermost first */
  constructor(path: readonly string[]) {
    this.path = path;
    this.fields = new RawFields([path]);
  }

  /** @returns the bytes that it takes */
  add(kept: Kept): number {
    let bytes = 0;
    for (const value of this.valuesOf(kept.body)) {
      const found = this.byValue.get(value);
      if (found) found.add(kept);
      else this.byValue.set(value, new Set([kept]));
      bytes += valueOverhead + 2 * value.length;
    }
    return bytes;
  }

  /** @returns the bytes that it took */
  remove(kept: Kept): number {
    let bytes = 0;
    for (const value of this.valuesOf(kept.body)) {
      const found = this.byValue.get(value);
      found?.delete(kept);
      if (found?.size === 0) this.byValue.delete(value);
      bytes += valueOverhead + 2 * value.length;
    }
    return bytes;
  }

  of(value: string): Iterable<Kept> {
    return this.byValue.get(value) ?? [];
  }

  /** The field's value as text, or each element's if it is a list. Empty if the field is absent, null or an object. */
  private valuesOf(body: Buffer): ReadonlySet<string> {
    const [text] = this.fields.of({ body }) ?? [this.parsed(body)];
    if (!text || text.length === 0) return new Set();
    const value = parseExactly(text.toString("utf8"));
    return new Set(
      (Array.isArray(value) ? value : [value])
        .map((each) => textOfNumber(each) ?? each)
        .filter(isScalar)
        .map(String),
    );
  }

  /** Fallback for the rare object whose keys are written with escapes. */
  private parsed(body: Buffer): Buffer {
    let value = parseExactly(body.toString("utf8"));
    for (const name of this.path) {
      const isObject =
        typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name);
      value = isObject ? (value as Record<string, unknown>)[name] : undefined;
    }
    return Buffer.from(JSON.stringify(value) ?? "");
  }
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";
