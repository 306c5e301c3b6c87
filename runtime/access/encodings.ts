import { clean } from "../base/wording.ts";

/** The texts as which a value may stand. They may be short, or empty. */
type Encoding = (text: string) => readonly string[];

/**
 * The encodings in which a value is looked for in what a handler writes. Libraries and the platform make them of a value that a
 * handler passes on with the best intentions. A handler that wants to hide one finds others.
 */
export const encodings = {
  "as it is": (text) => [text],
  // As the sandbox writes out what would steer a terminal.
  "with control characters written out": (text) => [clean(text)],
  JSON: (text) => [inJson(text), clean(inJson(text))],
  // A field of a log line that is JSON by itself, an annotation of kubectl.
  "JSON within JSON": (text) => [inJson(inJson(text))],
  // Python's json.dumps writes ASCII alone; Go's json.Marshal writes these three so that HTML may hold them.
  "JSON in ASCII": (text) => [inJson(text).replace(/[^ -~]/g, codeUnit)],
  "JSON of Go": (text) => [inJson(text).replace(/[<>&]/g, codeUnit)],
  "a number": (text) => (isNumber.test(text.trim()) ? [String(Number(text))] : []),
  "percent-encoding": (text) => [encodeURIComponent(text.toWellFormed())],
  "percent-encoding of a URI": (text) => [encodeURI(text.toWellFormed())],
  "percent-encoding in small letters": (text) => [encodeURIComponent(text.toWellFormed()).replace(byte, lower)],
  form: (text) => [new URLSearchParams({ "": text }).toString().slice(1)],
  // Each part has characters of its own that it encodes, and a query more where the URL standard calls the scheme special.
  "a URL": (text) => [
    partOfUrl("password", text),
    partOfUrl("pathname", text),
    partOfUrl("hash", text),
    partOfUrl("search", text),
    partOfUrl("search", text, "https"),
  ],
  base64: (text) => base64(Buffer.from(text, "utf8")),
  base64url: (text) => base64(Buffer.from(text, "utf8")).map(urlSafe),
  // `btoa` takes each character for a byte.
  "base64 of Latin-1": (text) => (isLatin1.test(text) ? base64(Buffer.from(text, "latin1")) : []),
  "base64url of Latin-1": (text) => (isLatin1.test(text) ? base64(Buffer.from(text, "latin1")).map(urlSafe) : []),
  hex: (text) => hex(Buffer.from(text, "utf8")),
  "hex of Latin-1": (text) => (isLatin1.test(text) ? hex(Buffer.from(text, "latin1")) : []),
} as const satisfies Readonly<Record<string, Encoding>>;

/**
 * Characters of the longest value that is looked for in every encoding. All of them take the parent some 10 ms for one of
 * this length, and seconds for a file of 1 MiB, the longest Secret. A private key has 4,000.
 */
const longestEncoded = 8 * 1024;

/** The encodings of longer values: those that handlers and the platform make of whole files. */
const ofFiles = [
  "as it is",
  "with control characters written out",
  "JSON",
  "percent-encoding",
  "form",
  "base64",
  "base64url",
] as const satisfies readonly (keyof typeof encodings)[];

/**
 * Every form of a value, and of the value without the space around it. A secret file mostly ends in a line break that a handler
 * trims: both are the secret.
 * @param shortest characters of what is a value: what is left of a shorter one has no forms
 */
export function formsOf(value: string, shortest: number): ReadonlySet<string> {
  const texts = [...new Set([value, value.trim()])].filter((text) => text.length >= shortest);
  return new Set(
    texts.flatMap((text) => {
      const encoders = text.length > longestEncoded ? ofFiles.map((name) => encodings[name]) : Object.values(encodings);
      return encoders.flatMap((encode: Encoding) => encode(text));
    }),
  );
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A part of a URL as it stands there, without the mark before it. */
function partOfUrl(part: "password" | "pathname" | "hash" | "search", text: string, scheme = "postgres"): string {
  const url = new URL(`${scheme}://host/`);
  url[part] = text;
  return part === "password" ? url.password : url[part].slice(1);
}

const byte = /%[0-9A-F]{2}/g;

const lower = (text: string): string => text.toLowerCase();

const codeUnit = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A decimal number as JSON or a person writes it; of others `Number` makes what nobody calls that. */
const isNumber = /^[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** Not ASCII alone, which has the same bytes in UTF-8. */
const isLatin1 = /^(?=.*[\x80-\xff])[\0-\xff]*$/s;

const hex = (bytes: Buffer): readonly string[] => {
  const text = bytes.toString("hex");
  return [text, text.toUpperCase()];
};

const urlSafe = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_");

/** Alone, or behind other bytes: a Basic header's token stands behind the user's name. */
function base64(bytes: Buffer): readonly string[] {
  const alone = bytes.toString("base64").replace(/=+$/, "");
  const behind = [1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    // Without the characters that hold bits of what is before or behind it.
    return text.slice(shift + 1, Math.floor(((shift + bytes.length) * 4) / 3));
  });
  const followed = alone.slice(0, Math.floor((bytes.length * 4) / 3));
  return [alone, followed, ...behind];
}
