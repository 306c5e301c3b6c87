import type { Json, JsonObject } from "../schema/index.ts";

/** A value in protobuf's wire format, without its field's number. */
interface Encoded {
  readonly wire: 0 | 1 | 2;
  readonly bytes: Buffer;
}

/** Encodes a JSON value as a field's value. */
export type Encode = (value: Json) => Encoded;

const delimited = (bytes: Buffer): Encoded => ({ wire: 2, bytes: Buffer.concat([varint(bytes.length), bytes]) });

export const text: Encode = (value) => delimited(Buffer.from(String(value)));

/** A bool, or an integer that is not negative. */
export const whole: Encode = (value) => ({ wire: 0, bytes: varint(Number(value)) });

export const double: Encode = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(Number(value));
  return { wire: 1, bytes };
};

/** Encodes a message with one field, which holds the value; if it is a list, one field for each item. */
export const within = (number: number, encode: Encode): Encode => {
  return (value) => delimited(Buffer.concat([value].flat().map((one) => field(number, encode(one)))));
};

/** Encodes a message that lists an object's entries in field `number`, each as a message of name and value. */
export const entries = (number: number, encode: Encode): Encode => {
  return (value) =>
    delimited(Buffer.concat(Object.entries(value as JsonObject).map((each) => entry(number, each, encode))));
};

/** The fields of a message by their JSON name: number, encoding, and whether a list becomes one field per item. */
export type Fields = Readonly<Record<string, readonly [number: number, encode: Encode, each?: "each"]>>;

/** Encodes an object's fields as a message. Fields outside the table go to `others`, or are omitted. */
export const message = (fields: Fields, others?: (name: string, value: Json) => Buffer | undefined): Encode => {
  return (value) =>
    delimited(
      Buffer.concat(
        Object.entries(value as JsonObject).flatMap(([name, one]) => {
          const [number, encode, each] = fields[name] ?? [];
          if (number === undefined || !encode) return others?.(name, one) ?? [];
          return (each && Array.isArray(one) ? one : [one]).map((item) => field(number, encode(item)));
        }),
      ),
    );
};

/** Encodes one name and its value as field `number` of a message. */
export const entry = (number: number, [name, value]: readonly [string, Json], encode: Encode): Buffer =>
  field(number, delimited(Buffer.concat([field(1, text(name)), field(2, encode(value))])));

/** Encodes a top-level message. */
export const alone = (encode: Encode, value: Json): Buffer => {
  const { bytes } = encode(value);
  return bytes.subarray(varintLength(bytes));
};

const field = (number: number, { wire, bytes }: Encoded): Buffer => Buffer.concat([varint(number * 8 + wire), bytes]);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Buffer.from([...bytes, rest]);
}

const varintLength = (bytes: Buffer): number => bytes.findIndex((byte) => byte < 0x80) + 1;
