import { parseExactly, textOfNumber } from "../base/exact-json.ts";
import { RawFields } from "../engine/filter/raw-fields.ts";
import { eachItem } from "../manifest/field-path.ts";

/** Bytes that one value of one object takes in an index, in addition to its text: an entry of a map and one of a set. */
const valueOverhead = 128;

/** Maximum of different values of one object in one index. An object with more is not found by it. */
export const mostValues = 1000;

/** Index of objects by the values of one field. */
export class FieldIndex<Kept extends { readonly body: Buffer }> {
  /** The path up to the first list that it leads into, and the rest. */
  private readonly path: readonly string[];
  private readonly rest: readonly string[];
  private readonly fields: RawFields;
  private readonly byValue = new Map<string, Set<Kept>>();
  /** Objects with more values than an index takes. */
  readonly crowded = new Set<Kept>();

  /** @param path the field's segments, outermost first */
  constructor(path: readonly string[]) {
    const first = path.indexOf(eachItem);
    this.path = first < 0 ? path : path.slice(0, first);
    this.rest = path.slice(this.path.length);
    this.fields = new RawFields([this.path]);
  }

  /** @returns the bytes that it takes */
  add(kept: Kept): number {
    const values = this.valuesOf(kept.body);
    if (values.size > mostValues) {
      this.crowded.add(kept);
      return valueOverhead;
    }
    let bytes = 0;
    for (const value of values) {
      const found = this.byValue.get(value);
      if (found) found.add(kept);
      else this.byValue.set(value, new Set([kept]));
      bytes += valueOverhead + 2 * value.length;
    }
    return bytes;
  }

  /** @returns the bytes that it took */
  remove(kept: Kept): number {
    if (this.crowded.delete(kept)) return valueOverhead;
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

  /**
   * The field's values as text: the field's own, or each element's if it is a list. Empty if the field is absent, null or an
   * object.
   */
  private valuesOf(body: Buffer): ReadonlySet<string> {
    const [text] = this.fields.of({ body }) ?? [this.parsed(body)];
    if (!text || text.length === 0) return new Set();
    let values: unknown[] = [parseExactly(text.toString("utf8"))];
    for (const step of this.rest) {
      values = step === eachItem ? values.flatMap(itemsOf) : values.map((each) => memberOf(each, step));
    }
    const found = new Set<string>();
    for (const each of values) {
      for (const item of Array.isArray(each) ? each : [each]) {
        const value = textOfNumber(item) ?? item;
        if (isScalar(value)) found.add(String(value));
        // One more shows that there are too many. The rest of a long list is not looked at.
        if (found.size > mostValues) return found;
      }
    }
    return found;
  }

  /** Fallback for the rare object whose keys are written with escapes. */
  private parsed(body: Buffer): Buffer {
    let value = parseExactly(body.toString("utf8"));
    for (const name of this.path) value = memberOf(value, name);
    return Buffer.from(JSON.stringify(value) ?? "");
  }
}

const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** A member of an object; `undefined` of anything else, such as a list or a number that is kept as its text. */
function memberOf(value: unknown, name: string): unknown {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject || textOfNumber(value) !== undefined || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";
