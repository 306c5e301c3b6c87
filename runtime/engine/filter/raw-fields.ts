import { memberOffsets, type ObjectMembers } from "../../informer/scan/change.ts";
import { skipColon, skipSpace, skipString, skipValue } from "./json-walk.ts";

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const openBracket = 0x5b;
const backslash = 0x5c;

/** An object's JSON, well formed, in UTF-8. */
export interface ObjectText {
  readonly body: Buffer;
  /** Where its members are, where that is known. */
  readonly members?: ObjectMembers | undefined;
}

/** Names that are looked for in one object at most: each key is compared with all of them. */
const mostNames = 16;

/** A member of the objects in which fields are looked for. */
interface FieldNode {
  readonly name: Buffer;
  readonly text: string;
  readonly members: FieldNode[];
  /** The path that ends here, by its place among the paths; -1 where none does. */
  path: number;
  /** Where its value was found; 0 where it was not. */
  from: number;
  to: number;
}

/** Named fields of JSON text, found without parsing it, in one pass over the objects that hold them. */
export class RawFields {
  private readonly root: FieldNode = member("");
  private readonly count: number;

  /** @param paths names from the outside in; an empty one is the whole */
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

  /** Each path's bytes as they are written, empty where it is absent; undefined where only parsing can tell. */
  of(object: ObjectText): readonly Buffer[] | undefined {
    if (!this.find(object)) return undefined;
    const found = Array<Buffer>(this.count).fill(object.body.subarray(0, 0));
    collect(object.body, this.root, found);
    return found;
  }

  /**
   * JSON of the same object with nothing but these fields, and what is no object where one is expected; undefined where only
   * parsing can tell.
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

/** Takes what is known of an object's members, and looks for theirs. */
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

/** Looks for the members of a value that was found. As in a parser, the last of several with one name counts. Gives false where only parsing can tell. */
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
