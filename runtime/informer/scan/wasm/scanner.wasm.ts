// Locates the fields that the host needs in a watch's line or in one Kubernetes object, while it checks the JSON.
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

/** Address where a key with escapes is decoded for comparison. */
const spelled: i32 = 512;

/** Added to an index into the memory to get an index into the caller's bytes. */
let shift: i32 = 0;
let memberCount: i32 = 0;
let cutCount: i32 = 0;
/** Address of the cuts. */
let cuts: i32 = 0;

/**
 * Scans a text. Returns whether it is one well-formed JSON object, surrounded by white space at most. If a key is duplicated, the
 * last value counts, as for JSON.parse.
 * @param start index of the text in the caller's bytes; all results are indexes into these.
 * @param isLine true for a watch's line, false for an object alone.
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

/** Clears the fields of an earlier object under the same key. Cuts of metadata are kept, because its text stays in the object. */
function forget(firstField: i32): void {
  const from = slotOf(firstField);
  memory.fill(from, 0, slotOf(layout.managedFieldsField + 1) - from);
  if (firstField <= layout.kindField) memberCount = cutCount = 0;
}

/**
 * Scans a value's members one by one; a value that is not an object has no members.
 * @param first the first field to look for.
 * @param last the last field to look for.
 * @returns the index after the value.
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
    // A cut includes the comma before the member, or the comma after it if no member before it remains.
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

/** Returns the form of a value, or of a key given with its quotes. */
function formOf(value: i32, after: i32): i32 {
  if (load<u8>(value) !== quote) return layout.noString;
  const end = after - 1;
  for (let at = value + 1; at < end; at += 16) {
    const block = v128.load(at);
    // The mask takes the highest bit of each byte, which is set in every byte that is not ASCII.
    let coded = i8x16.bitmask(v128.or(block, i8x16.eq(block, i8x16.splat(0x5c))));
    if (end - at < 16) coded &= (1 << (end - at)) - 1;
    if (coded !== 0) return layout.codedString;
  }
  return layout.plainString;
}

/** Returns the field that the key names. */
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

/** Decodes a key as long as it may be a field's name. @returns its length, or 0. */
function spell(key: i32, end: i32): i32 {
  let length = 0;
  for (let at = key; at < end; at++) {
    let byte = <i32>load<u8>(at);
    if (byte === backslash) {
      // Only this escape can stand for a letter.
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
