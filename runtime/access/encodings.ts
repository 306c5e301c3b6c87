import { clean } from "../base/wording.ts";

/** Returns the forms of a value in one encoding. Some may be too short to search for. */
type Encoding = (text: string) => readonly string[];

/**
 * Encodings in which values of `env` that come from Secrets and ConfigMaps are searched for in the output of a handler. Libraries and the platform produce them for values that
 * a handler passes on in good faith. A handler that wants to hide a value can use others.
 */
export const encodings = {
  "unchanged text": (text) => [text],
  // As the sandbox escapes control characters for a terminal.
  "with control characters written out": (text) => [clean(text)],
  JSON: (text) => [inJson(text), clean(inJson(text))],
  // A field of a log line that is JSON itself, such as kubectl's annotation.
  "JSON within JSON": (text) => [inJson(inJson(text))],
  // Python's json.dumps writes ASCII only; Go's json.Marshal escapes these three for HTML.
  "JSON in ASCII": (text) => [inJson(text).replace(/[^ -~]/g, codeUnit)],
  "JSON of Go": (text) => [inJson(text).replace(/[<>&]/g, codeUnit)],
  "a number": (text) => (isNumber.test(text.trim()) ? [String(Number(text))] : []),
  "percent-encoding": (text) => [encodeURIComponent(text.toWellFormed())],
  "percent-encoding of a URI": (text) => [encodeURI(text.toWellFormed())],
  "percent-encoding in small letters": (text) => [encodeURIComponent(text.toWellFormed()).replace(byte, lower)],
  form: (text) => [new URLSearchParams({ "": text }).toString().slice(1)],
  // Each part of a URL has a different set of encoded characters. In a query of http and https, `'` is encoded too.
  "a URL": (text) => [
    partOfUrl("password", text),
    partOfUrl("pathname", text),
    partOfUrl("hash", text),
    partOfUrl("search", text),
    partOfUrl("search", text, "https"),
  ],
  base64: (text) => base64(Buffer.from(text, "utf8")),
  base64url: (text) => base64(Buffer.from(text, "utf8")).map(urlSafe),
  // `btoa` treats each character as a byte.
  "base64 of Latin-1": (text) => (isLatin1.test(text) ? base64(Buffer.from(text, "latin1")) : []),
  "base64url of Latin-1": (text) => (isLatin1.test(text) ? base64(Buffer.from(text, "latin1")).map(urlSafe) : []),
  hex: (text) => hex(Buffer.from(text, "utf8")),
  "hex of Latin-1": (text) => (isLatin1.test(text) ? hex(Buffer.from(text, "latin1")) : []),
} as const satisfies Readonly<Record<string, Encoding>>;

/**
 * Maximum length, in characters, of values that are searched for in every encoding. All forms of one value of this length take
 * the runtime's process about 10 ms, those of 1 MiB, the largest Secret, seconds. A private key has 4,000 characters.
 */
const longestEncoded = 8 * 1024;

/** The encodings of longer values: those that handlers and the platform produce for whole files. */
const ofFiles = [
  "unchanged text",
  "with control characters written out",
  "JSON",
  "percent-encoding",
  "form",
  "base64",
  "base64url",
] as const satisfies readonly (keyof typeof encodings)[];

/**
 * Returns every form of a value, with and without surrounding white space, because a secret file usually ends in a line break
 * that a handler trims.
 * @param shortest minimum length; shorter values, also after trimming, have no forms
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

/** Returns a part of a URL as encoded there, without the preceding delimiter. */
function partOfUrl(part: "password" | "pathname" | "hash" | "search", text: string, scheme = "postgres"): string {
  const url = new URL(`${scheme}://host/`);
  url[part] = text;
  return part === "password" ? url.password : url[part].slice(1);
}

const byte = /%[0-9A-F]{2}/g;

const lower = (text: string): string => text.toLowerCase();

const codeUnit = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A decimal number as JSON or a person writes it. `Number` also accepts other texts, which nobody would call a number. */
const isNumber = /^[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** Excludes pure ASCII, which has the same bytes in UTF-8. */
const isLatin1 = /^(?=.*[\x80-\xff])[\0-\xff]*$/s;

const hex = (bytes: Buffer): readonly string[] => {
  const text = bytes.toString("hex");
  return [text, text.toUpperCase()];
};

const urlSafe = (text: string): string => text.replaceAll("+", "-").replaceAll("/", "_");

/** Returns the encoded value alone and after other bytes, such as the token of a Basic header after the user's name. */
function base64(bytes: Buffer): readonly string[] {
  const alone = bytes.toString("base64").replace(/=+$/, "");
  const behind = [1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    // Without the characters that contain bits of the neighbouring bytes.
    return text.slice(shift + 1, Math.floor(((shift + bytes.length) * 4) / 3));
  });
  const followed = alone.slice(0, Math.floor((bytes.length * 4) / 3));
  return [alone, followed, ...behind];
}
