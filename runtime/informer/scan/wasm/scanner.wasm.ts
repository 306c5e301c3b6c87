// What the host needs of a watch's line, or of one Kubernetes object, found while its JSON is checked.
import {
  backslash,
  closeBrace,
  comma,
  hexDigit,
  malformed,
  openBrace,
  quote,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from "./json.wasm";
import * as layout from "./layout";

/** A key with escapes is spelled out here to be compared. */
const spelled: i32 = 512;

/** What is added to an index of the memory to make it one of the caller's bytes. */
let shift: i32 = 0;
let memberCount: i32 = 0;
let cutCount: i32 = 0;
/** Where the cuts begin. */
let cuts: i32 = 0;

/**
 * Whether the text is one well-formed JSON object with nothing but white space around it. Of a key that stands twice the
 * last counts, as for JSON.parse.
 * @param start where the text stands in the caller's bytes: all that is found is said in indexes of these.
 * @param isLine an object alone otherwise.
 */
export function scan(start: i32, end: i32, isLine: bool): bool {
  const textEnd = layout.text + end - start;
  v128.store(textEnd, i8x16.splat(0));
  v128.store(textEnd, i8x16.splat(0), 16);
  shift = start - layout.text;
  cuts = (textEnd + layout.textMargin + 3) & ~3;
  forget(layout.typeField);
  const from = skipSpace(layout.text);
  if (load<u8>(from) !== openBrace) return false;
  const after = isLine ? scanMembers(from, layout.typeField, layout.objectField) : scanObject(from);
  if (after === malformed || skipSpace(after) !== textEnd) return false;
  if (!isLine) keep(layout.objectField, from, after);
  store<i32>(layout.memberCount << 2, memberCount);
  store<i32>(layout.cutCount << 2, cutCount);
  store<i32>(layout.cutsAt << 2, cuts >> 2);
  return true;
}

function scanObject(from: i32): i32 {
  forget(layout.kindField);
  return scanMembers(from, layout.kindField, layout.metadataField);
}

function scanMetadata(from: i32): i32 {
  forget(layout.nameField);
  return scanMembers(from, layout.nameField, layout.managedFieldsField);
}

/** Of an object that stands twice nothing of the first is kept, but for the cuts of metadata, which stay in its text. */
function forget(firstField: i32): void {
  const from = slotOf(firstField);
  memory.fill(from, 0, slotOf(layout.managedFieldsField + 1) - from);
  if (firstField <= layout.kindField) memberCount = cutCount = 0;
}

/**
 * A value whose members are looked at one by one; one that is no object has none.
 * @param first of the fields that are looked for.
 * @param last of them.
 * @returns the index after it.
 */
function scanMembers(from: i32, first: i32, last: i32): i32 {
  if (load<u8>(from) !== openBrace) return skipValue(from);
  let at = skipSpace(from + 1);
  if (load<u8>(at) === closeBrace) return at + 1;
  let before = at;
  let isFirst = true;
  while (true) {
    if (load<u8>(at) !== quote) return malformed;
    const key = at + 1;
    const afterKey = skipString(key);
    if (afterKey === malformed) return malformed;
    const value = skipColon(afterKey);
    if (value === malformed) return malformed;
    const field = fieldOf(key, afterKey - 1, first, last);
    const after = scanMember(field, value);
    if (after === malformed) return malformed;
    if (field !== layout.noField) keep(field, value, after);
    if (first === layout.kindField) addMember(key, afterKey - 1, value, after);
    const next = skipSpace(after);
    const byte = <i32>load<u8>(next);
    // What is left out takes the comma before it along, or the one after it where it comes first of what is left.
    if (!isCut(field)) isFirst = false;
    else if (isFirst) cut(field, at, byte === comma ? next + 1 : after);
    else cut(field, before, after);
    if (byte === closeBrace) return next + 1;
    if (byte !== comma) return malformed;
    before = next;
    at = skipSpace(next + 1);
  }
}

function scanMember(field: i32, value: i32): i32 {
  if (field === layout.objectField) return scanObject(value);
  return field === layout.metadataField ? scanMetadata(value) : skipValue(value);
}

function slotOf(field: i32): i32 {
  return (layout.slots + field * layout.slotWords) << 2;
}

function keep(field: i32, value: i32, after: i32): void {
  const slot = slotOf(field);
  store<i32>(slot, value + shift);
  store<i32>(slot, after + shift, 4);
  store<i32>(slot, formOf(value, after), 8);
}

function addMember(key: i32, keyEnd: i32, value: i32, after: i32): void {
  const at = (layout.members + memberCount * layout.memberWords) << 2;
  memberCount++;
  if (memberCount > layout.mostMembers) return;
  store<i32>(at, key + shift);
  store<i32>(at, keyEnd + shift, 4);
  store<i32>(at, value + shift, 8);
  store<i32>(at, after + shift, 12);
}

function isCut(field: i32): bool {
  return field === layout.kindField || field === layout.apiVersionField || field === layout.managedFieldsField;
}

function cut(field: i32, start: i32, end: i32): void {
  const at = cuts + ((cutCount * layout.cutWords) << 2);
  cutCount++;
  store<i32>(at, start + shift);
  store<i32>(at, end + shift, 4);
  store<i32>(at, field === layout.managedFieldsField ? 0 : 1, 8);
}

/** The form of a value, and of a key where it is given with its quotes. */
function formOf(value: i32, after: i32): i32 {
  if (load<u8>(value) !== quote) return layout.noString;
  const end = after - 1;
  for (let at = value + 1; at < end; at += 16) {
    const block = v128.load(at);
    // The mask takes the highest bit of each byte, which all have that are not ASCII.
    let coded = i8x16.bitmask(v128.or(block, i8x16.eq(block, i8x16.splat(0x5c))));
    if (end - at < 16) coded &= (1 << (end - at)) - 1;
    if (coded !== 0) return layout.codedString;
  }
  return layout.plainString;
}

/** Which of the fields the key names. */
function fieldOf(key: i32, end: i32, first: i32, last: i32): i32 {
  for (let field = first; field <= last; field++) if (isNamed(field, key, end - key)) return field;
  if (formOf(key - 1, end + 1) !== layout.codedString) return layout.noField;
  // No server writes `"n\u0061me"`, but JSON.parse in the isolate would read it as `name`, so we do.
  const length = spell(key, end);
  for (let field = first; field <= last; field++) if (isNamed(field, spelled, length)) return field;
  return layout.noField;
}

function isNamed(field: i32, key: i32, length: i32): bool {
  const name = layout.names + field * layout.nameBytes;
  if (load<u8>(name, layout.nameBytes - 1) !== length) return false;
  const equal = i8x16.bitmask(i8x16.eq(v128.load(name), v128.load(key)));
  return ctz(~equal) >= length;
}

/** Decodes a key as far as it may be a field's name. @returns its length, or 0. */
function spell(key: i32, end: i32): i32 {
  let length = 0;
  for (let at = key; at < end; at++) {
    let byte = <i32>load<u8>(at);
    if (byte === backslash) {
      // No other escape than this stands for a letter.
      if (load<u8>(at, 1) !== 0x75 || load<u16>(at, 2) !== 0x3030) return 0;
      byte = (hexDigit(load<u8>(at, 4)) << 4) | hexDigit(load<u8>(at, 5));
      at += 5;
    }
    if (length === layout.nameBytes - 1) return 0;
    store<u8>(spelled + length, <u8>byte);
    length++;
  }
  return length;
}
