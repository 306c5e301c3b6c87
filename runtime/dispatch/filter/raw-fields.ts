import { skipColon, skipSpace, skipString, skipValue } from "../../watch/json-scan.ts";

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;
const backslash = 0x5c;

/** Where a value's bytes begin and end; `absent`: there is none; `unclear`: only parsing can tell. */
type Span = readonly [from: number, to: number] | "absent" | "unclear";

/** A named field of JSON text, found without parsing: its path's names in UTF-8. */
export class RawField {
  private readonly names: readonly Buffer[];

  constructor(path: readonly string[]) {
    this.names = path.map((name) => Buffer.from(name));
  }

  /** The field's bytes as they are written, empty where it is absent; undefined where only parsing can tell. `json`: well formed. */
  of(json: Buffer): Buffer | undefined {
    let span: Span = [0, json.length];
    for (const name of this.names) {
      span = memberOf(json, skipSpace(json, span[0], span[1]), span[1], name);
      if (span === "absent") return json.subarray(0, 0);
      if (span === "unclear") return undefined;
    }
    return json.subarray(span[0], span[1]);
  }
}

/** A member of the value that begins there. As in a parser, the last of several with one name counts. */
function memberOf(json: Buffer, from: number, end: number, name: Buffer): Span {
  // An array's items have names as well.
  if (json[from] === openBracket) return "unclear";
  if (json[from] !== openBrace) return "absent";
  let found: Span = "absent";
  for (let at = skipSpace(json, from + 1, end); json[at] === quote; ) {
    const keyEnd = skipString(json, at + 1, end);
    if (keyEnd < 0) return "unclear";
    const isFound = isName(json, at + 1, keyEnd - 1, name);
    if (isFound === undefined) return "unclear";
    const value = skipColon(json, keyEnd, end);
    const next = value < 0 ? value : skipValue(json, value, end);
    if (next < 0) return "unclear";
    if (isFound) found = [value, next];
    at = skipSpace(json, next, end);
    if (json[at] !== comma) return found;
    at = skipSpace(json, at + 1, end);
  }
  return found;
}

/** Undefined for a key with escapes. */
function isName(json: Buffer, from: number, to: number, name: Buffer): boolean | undefined {
  let isSame = to - from === name.length;
  for (let at = from; at < to; at++) {
    if (json[at] === backslash) return undefined;
    if (isSame && json[at] !== name[at - from]) isSame = false;
  }
  return isSame;
}
