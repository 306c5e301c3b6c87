import { memberOffsets, type ObjectMembers } from "../../informer/scan/change.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;

/** Returns the first index from `from` on that is not white space. */
function skipSpace(json: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(json[at])) at++;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @param from the index of the opening quote. @returns the index after the closing one. */
function skipString(json: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== quote) at += json[at] === backslash ? 2 : 1;
  return at + 1;
}

/** @param from the index after a key's closing quote. @returns the index of the member's value. */
function skipColon(json: Uint8Array, from: number): number {
  return skipSpace(json, skipSpace(json, from) + 1);
}

/** @param from the index of the value's first byte. @returns the index after its last. */
function skipValue(json: Uint8Array, from: number): number {
  let at = from;
  let depth = 0;
  while (at < json.length) {
    const byte = json[at] as number;
    if (byte === quote) at = skipString(json, at);
    else if (isOpening(byte)) {
      depth++;
      at++;
    } else if (isClosing(byte)) {
      depth--;
      at++;
    } else if (depth > 0) at++;
    else return skipScalar(json, at);
    if (depth <= 0) return at;
  }
  return at;
}

function isOpening(byte: number): boolean {
  return byte === 0x7b || byte === 0x5b;
}

function isClosing(byte: number): boolean {
  return byte === 0x7d || byte === 0x5d;
}

/** Skips a number, `true`, `false` or `null`. */
function skipScalar(json: Uint8Array, from: number): number {
  let at = from;
  while (at < json.length && json[at] !== comma && !isClosing(json[at] as number) && !isSpace(json[at])) at++;
  return at;
}

/** The well-formed JSON of an object, in UTF-8. */
export interface ObjectText {
  readonly body: Buffer;
  /** The byte ranges of its members, if known. */
  readonly members?: ObjectMembers | undefined;
}

/** The number of names that are searched for in one object: each key is compared with all of them. */
const mostNames = 16;

/** A member in the tree of fields to find. */
interface FieldNode {
  readonly name: Buffer;
  readonly text: string;
  readonly members: FieldNode[];
  /** The index of the path that ends here; -1 for an inner member. */
  path: number;
  /** The byte range of its value; 0 if it was not found. */
  from: number;
  to: number;
}

/** Finds named fields in JSON text without parsing it, in one pass over the objects that hold them. */
export class RawFields {
  private readonly root: FieldNode = member("");
  private readonly count: number;

  /** @param paths names from the outside in; an empty one is the whole object */
  constructor(paths: readonly (readonly string[])[]) {
    this.count = paths.length;
    for (const [index, path] of paths.entries()) {
      let at = this.root;
      for (const name of path) {
        const known = at.members.find(({ text }) => text === name);
        const next = known ?? member(name);
        if (!known) at.members.push(next);
        at = next;
      }
      at.path = index;
    }
  }

  /** Returns each path's bytes as written, empty if it is absent; `undefined` if only a parser can find them. */
  of(object: ObjectText): readonly Buffer[] | undefined {
    if (!this.find(object)) return undefined;
    const found = Array<Buffer>(this.count).fill(object.body.subarray(0, 0));
    collect(object.body, this.root, found);
    return found;
  }

  /**
   * Returns JSON of the same object with only these fields; a value that should be an object and is not stays whole. `undefined`
   * if only a parser can find them.
   */
  excerpt(object: ObjectText): string | undefined {
    return this.find(object) ? excerptOf(object.body, this.root) : undefined;
  }

  private find({ body, members }: ObjectText): boolean {
    const { root } = this;
    root.from = skipSpace(body, 0);
    root.to = body.length;
    return members && root.members.length <= mostNames ? pick(body, root.members, members) : search(body, root);
  }
}

const member = (text: string): FieldNode => ({ name: Buffer.from(text), text, members: [], path: -1, from: 0, to: 0 });

/** Sets the members' byte ranges from the known ones, and searches their values. */
function pick(json: Buffer, wanted: readonly FieldNode[], known: ObjectMembers): boolean {
  for (const each of wanted) each.from = each.to = 0;
  for (let at = 0; at < known.length; at += memberOffsets.count) {
    const [from, to] = [known[at + memberOffsets.keyStart] as number, known[at + memberOffsets.keyEnd] as number];
    if (isEscaped(json, from, to)) return false;
    const named = memberOf(wanted, json, from, to);
    if (!named) continue;
    named.from = known[at + memberOffsets.valueStart] as number;
    named.to = known[at + memberOffsets.valueEnd] as number;
  }
  return searchAll(json, wanted);
}

/**
 * Searches a value for its members. As in a parser, the last of several members with one name counts. Returns false if only a
 * parser can find them.
 */
function search(json: Buffer, { members, from }: FieldNode): boolean {
  if (members.length === 0) return true;
  for (const each of members) each.from = each.to = 0;
  if (members.length > mostNames) return false;
  // An array's items have names as well.
  if (json[from] === openBracket) return false;
  if (json[from] !== openBrace) return true;
  for (let at = skipSpace(json, from + 1); json[at] === quote; ) {
    const keyEnd = skipString(json, at);
    if (isEscaped(json, at + 1, keyEnd)) return false;
    const named = memberOf(members, json, at + 1, keyEnd - 1);
    const value = skipColon(json, keyEnd);
    const next = skipValue(json, value);
    if (named) {
      named.from = value;
      named.to = next;
    }
    at = skipSpace(json, next);
    if (json[at] !== comma) break;
    at = skipSpace(json, at + 1);
  }
  return searchAll(json, members);
}

function searchAll(json: Buffer, members: readonly FieldNode[]): boolean {
  for (const each of members) if (each.to > 0 && !search(json, each)) return false;
  return true;
}

function memberOf(members: readonly FieldNode[], json: Buffer, from: number, to: number): FieldNode | undefined {
  for (const each of members) {
    const { name } = each;
    if (name.length !== to - from) continue;
    let at = 0;
    while (at < name.length && json[from + at] === name[at]) at++;
    if (at === name.length) return each;
  }
  return undefined;
}

function isEscaped(json: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (json[at] === backslash) return true;
  return false;
}

function collect(json: Buffer, { path, from, to, members }: FieldNode, found: Buffer[]): void {
  if (path >= 0) found[path] = json.subarray(from, to);
  for (const each of members) if (each.to > 0) collect(json, each, found);
}

function excerptOf(json: Buffer, { path, from, to, members }: FieldNode): string {
  if (path >= 0 || json[from] !== openBrace) return json.toString("utf8", from, to);
  let all = "";
  for (const each of members) {
    if (each.to > 0) all += `${all === "" ? "" : ","}${JSON.stringify(each.text)}:${excerptOf(json, each)}`;
  }
  return `{${all}}`;
}
