import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { resourceVersion } from "../../base/resource-version.ts";
import type { JournalEntries } from "../batch.ts";
import { headerOf, readLetter, readSpilled, startedRows } from "../rows.ts";
import type { MemoryDisk } from "./journal.ts";

const version = z.string().transform(resourceVersion);
const body = z.union([z.string(), z.object({ base64: z.string() }), z.null()]);
const bodyMark = z.enum(["own", "older"]);
const gone = z.tuple([z.union([z.string(), z.number()])]);

/**
 * Schema of an entry: changed rows in their present state, and the keys of deleted rows. An entry with all rows is a snapshot.
 */
const entrySchema = z.object({
  nextView: z.number(),
  nextLetter: z.number(),
  cluster: z.string().nullable(),
  /** All paused functions, in each entry. Absent in entries of older runtimes. */
  paused: z.record(z.string(), z.number()).default({}),
  views: z.array(z.union([z.tuple([z.number(), z.string(), z.string(), z.string(), z.number().nullable()]), gone])),
  cursors: z.array(
    z.union([
      z.tuple([z.number(), z.string(), z.string(), version.nullable(), z.number(), z.boolean()]),
      z.tuple([z.number(), z.string()]),
    ]),
  ),
  known: z.array(
    z.union([
      z.tuple([z.number(), z.string(), z.string(), version, z.string(), z.boolean(), z.boolean()]),
      z.tuple([z.number(), z.string(), z.string(), version, z.string(), z.boolean(), z.boolean(), bodyMark]),
      z.tuple([z.number(), z.string()]),
    ]),
  ),
  /** Keys of the known objects in this entry. Separate from `known`, so that an older runtime can read that. */
  keys: z.array(z.tuple([z.number(), z.string(), z.array(z.string())])).default([]),
  /** The other fields of the views in this entry. Separate from `views`, so that an older runtime can read that. */
  records: z.array(z.tuple([z.number(), z.string(), z.string().nullable()])).default([]),
  /**
   * Forms of the known objects in this entry: view, form, and the objects' keys. No keys: all objects that the others do not
   * list.
   */
  forms: z.array(z.tuple([z.number(), z.string(), z.array(z.string())])).default([]),
  journal: z.array(z.union([z.tuple([z.number(), z.unknown()]), gone])),
  spill: z.array(z.union([z.tuple([z.string(), z.string(), body, body]), gone])),
  letters: z.array(z.union([z.tuple([z.string(), z.string(), body, body]), gone])),
  /** Entries of functions' own state: function, key, and JSON text unless it is deleted. Absent in older runtimes' entries. */
  own: z.array(z.union([z.tuple([z.string(), z.string(), z.string()]), z.tuple([z.string(), z.string()])])).default([]),
});
type ParsedEntry = z.infer<typeof entrySchema>;

/** Stands in memory for a known object's body that is stored elsewhere. */
export const bodyElsewhere = Buffer.alloc(0);

/** The rows that have changed since the last write. */
export class Changes {
  readonly views = new Set<number>();
  readonly cursors = new PairSet<number>();
  readonly known = new PairSet<number>();
  /** Function and key. */
  readonly own = new PairSet<string>();
  readonly journal = new Set<number>();
  readonly spill = new Set<string>();
  readonly letters = new Set<string>();

  /** Returns changes that contain every row. */
  static all(disk: MemoryDisk): Changes {
    const all = new Changes();
    for (const { id, cursors, known } of disk.views.values()) {
      all.views.add(id);
      for (const namespace of cursors.keys()) all.cursors.add(id, namespace);
      for (const key of known.keys()) all.known.add(id, key);
    }
    for (const id of disk.begun.keys()) all.journal.add(id);
    for (const [name, entries] of disk.own) for (const key of entries.keys()) all.own.add(name, key);
    for (const key of disk.spill.keys()) all.spill.add(key);
    for (const letter of disk.letters.keys()) all.letters.add(letter);
    return all;
  }

  note(entries: JournalEntries): void {
    for (const { id } of entries.views) this.views.add(id);
    for (const id of entries.goneViews) this.views.add(id);
    for (const { view, key } of entries.known) this.known.add(view, key);
    for (const { view, namespace } of [...entries.cursors, ...entries.droppedCursors])
      this.cursors.add(view, namespace);
    for (const { id } of entries.journal) this.journal.add(id);
    for (const id of entries.settledJournal) this.journal.add(id);
    for (const { function: name, sequence } of [...entries.spill, ...entries.unspill])
      this.spill.add(`${name}/${sequence}`);
    for (const { function: name, key } of entries.state) this.own.add(name, key);
    for (const { letter } of entries.deadLetters) this.letters.add(letter);
    for (const letter of [...entries.droppedDeadLetters, ...entries.emptiedDeadLetters]) this.letters.add(letter);
  }

  /** Adds the changes of `others`. */
  add(others: Changes): void {
    for (const id of others.views) this.views.add(id);
    for (const [view, namespace] of others.cursors) this.cursors.add(view, namespace);
    for (const [view, key] of others.known) this.known.add(view, key);
    for (const id of others.journal) this.journal.add(id);
    for (const [name, key] of others.own) this.own.add(name, key);
    for (const key of others.spill) this.spill.add(key);
    for (const letter of others.letters) this.letters.add(letter);
  }
}

/** A set of pairs of an owner, such as a view, and a key. */
class PairSet<Owner> {
  private readonly sets = new Map<Owner, Set<string>>();

  add(owner: Owner, key: string): void {
    const set = this.sets.get(owner);
    if (set) set.add(key);
    else this.sets.set(owner, new Set([key]));
  }

  *[Symbol.iterator](): Generator<readonly [Owner, string], void> {
    for (const [owner, keys] of this.sets) for (const key of keys) yield [owner, key];
  }
}

/**
 * Returns the changed rows in their present state, as JSON. Bodies of known objects are left out.
 * @param marksBodies records which objects have a body stored elsewhere
 */
export function encodeEntry(disk: MemoryDisk, changes: Changes, marksBodies = false): Buffer {
  const entry: ParsedEntry = {
    nextView: disk.nextView,
    nextLetter: disk.nextLetter,
    cluster: disk.cluster ?? null,
    paused: Object.fromEntries(disk.paused),
    views: [...changes.views].map((id) => {
      const view = disk.views.get(id);
      return view ? [id, view.function, view.trigger, view.resource, view.retiredAt ?? null] : [id];
    }),
    cursors: [...changes.cursors].map(([view, namespace]) => {
      const cursor = disk.views.get(view)?.cursors.get(namespace);
      if (!cursor) return [view, namespace];
      return [view, namespace, cursor.selection, cursor.lowWaterMark ?? null, cursor.epoch, cursor.initial];
    }),
    known: [...changes.known].map(([view, key]) => {
      const state = disk.views.get(view)?.known.get(key);
      if (!state) return [view, key];
      const { uid, resourceVersion: of, hash, deleted, matched } = state;
      if (!marksBodies || !state.body) return [view, key, uid, of, hash, deleted, matched];
      return [view, key, uid, of, hash, deleted, matched, state.bodyIsOlder ? "older" : "own"];
    }),
    keys: [...changes.known].flatMap(([view, key]) => {
      const keys = disk.views.get(view)?.known.get(key)?.keys;
      return keys ? [[view, key, [...keys]] as [number, string, string[]]] : [];
    }),
    records: [...changes.views].flatMap((id) => {
      const view = disk.views.get(id);
      return view ? [[id, view.identity, view.manifest ?? null] as [number, string, string | null]] : [];
    }),
    forms: formsIn(disk, changes.known),
    journal: [...changes.journal].map((id) => {
      const row = disk.begun.get(id);
      if (!row) return [id];
      return [id, row.started.map((it) => [it.view, it.key, it.id, it.resourceVersion, it.type, it.attempt])];
    }),
    spill: [...changes.spill].map((key) => {
      const event = disk.spill.get(key);
      return event ? [key, headerOf(event), encodeBody(event.body), encodeBody(event.oldBody)] : [key];
    }),
    letters: [...changes.letters].map((id) => {
      const letter = disk.letters.get(id);
      if (!letter) return [id];
      return [id, headerOf(letter), encodeBody(letter.body), encodeBody(letter.oldBody)];
    }),
    own: [...changes.own].map(([name, key]) => {
      const value = disk.own.get(name)?.get(key);
      return value === undefined ? [name, key] : [name, key, value];
    }),
  };
  return Buffer.from(JSON.stringify(entry));
}

/** Returns the forms of known objects. The keys of the most frequent form are left out. "" stands for a row without a form. */
function formsIn(disk: MemoryDisk, changed: Changes["known"]): ParsedEntry["forms"] {
  const byView = new Map<number, Map<string, string[]>>();
  for (const [view, key] of changed) {
    const state = disk.views.get(view)?.known.get(key);
    if (!state) continue;
    const forms = byView.get(view) ?? new Map<string, string[]>();
    byView.set(view, forms);
    const { form = "" } = state;
    const keys = forms.get(form);
    if (keys) keys.push(key);
    else forms.set(form, [key]);
  }
  return [...byView].flatMap(([view, forms]) => {
    const most = Math.max(...[...forms.values()].map(({ length }) => length));
    const [usual] = [...forms].find(([, { length }]) => length === most) ?? [];
    return [...forms].map(([form, keys]): ParsedEntry["forms"][number] => [view, form, form === usual ? [] : keys]);
  });
}

/** Sets the forms of an entry's known objects. */
function applyForms(disk: MemoryDisk, { known, forms }: ParsedEntry): void {
  const usual = new Map<number, string>();
  const others = new Map<number, Map<string, string>>();
  for (const [view, form, keys] of forms) {
    if (keys.length === 0) usual.set(view, form);
    const ofView = others.get(view) ?? new Map<string, string>();
    others.set(view, ofView);
    for (const key of keys) ofView.set(key, form);
  }
  for (const [view, key] of known) {
    const form = others.get(view)?.get(key) ?? usual.get(view);
    const objects = disk.views.get(view)?.known;
    const object = objects?.get(key);
    if (form && object) objects?.set(key, { ...object, form });
  }
}

/** Applies an entry's rows, and returns the entry. @throws ZodError or SyntaxError if `bytes` is not a valid entry */
export function applyEntry(disk: MemoryDisk, bytes: Buffer): ParsedEntry {
  const entry = entrySchema.parse(JSON.parse(bytes.toString("utf8")));
  disk.nextView = entry.nextView;
  disk.nextLetter = entry.nextLetter;
  disk.cluster = entry.cluster ?? undefined;
  disk.paused.clear();
  for (const [name, since] of Object.entries(entry.paused)) disk.paused.set(name, since);
  for (const row of entry.views) {
    if (row.length === 1) disk.forgetView(Number(row[0]));
    else {
      const [id, name, trigger, resource, retiredAt] = row;
      const { identity = trigger, manifest } = disk.views.get(id) ?? {};
      const view = { id, function: name, trigger, resource, identity, manifest };
      disk.putView({ ...view, retiredAt: retiredAt ?? undefined });
    }
  }
  for (const [id, identity, manifest] of entry.records) {
    const view = disk.views.get(id);
    if (view) Object.assign(view, { identity, manifest: manifest ?? undefined });
  }
  for (const row of entry.cursors) {
    const [view, namespace] = row;
    if (row.length === 2) disk.views.get(view)?.cursors.delete(namespace);
    else {
      const [, , selection, lowWaterMark, epoch, initial] = row;
      const cursor = { view, namespace, selection, lowWaterMark: lowWaterMark ?? undefined, epoch, initial };
      disk.views.get(view)?.cursors.set(namespace, cursor);
    }
  }
  for (const row of entry.known) {
    const [view, key] = row;
    if (row.length === 2) disk.views.get(view)?.known.delete(key);
    else {
      const [, , uid, resourceVersion, hash, deleted, matched, mark] = row;
      const body = mark && { body: bodyElsewhere, bodyIsOlder: mark === "older" };
      disk.views.get(view)?.known.set(key, { uid, resourceVersion, hash, deleted, matched, body: undefined, ...body });
    }
  }
  for (const [view, key, keys] of entry.keys) {
    const known = disk.views.get(view)?.known;
    const object = known?.get(key);
    if (object) known?.set(key, { ...object, keys });
  }
  applyForms(disk, entry);
  for (const row of entry.journal) {
    const id = Number(row[0]);
    if (row.length === 1) disk.begun.delete(id);
    else disk.begun.set(id, { id, started: startedRows.parse(row[1]) });
  }
  for (const row of entry.spill) {
    const key = String(row[0]);
    if (row.length === 1) disk.spill.delete(key);
    else disk.spill.set(key, readSpilled({ header: row[1], body: decodeBody(row[2]), old_body: decodeBody(row[3]) }));
  }
  for (const row of entry.letters) {
    const id = String(row[0]);
    if (row.length === 1) disk.letters.delete(id);
    else
      disk.letters.set(id, readLetter({ id, header: row[1], body: decodeBody(row[2]), old_body: decodeBody(row[3]) }));
  }
  for (const [name, key, value] of entry.own) disk.putOwn({ function: name, key, value });
  return entry;
}

/** Encodes a body as text if it is UTF-8, because that compresses better than base64. */
function encodeBody(bytes: Buffer | undefined): z.infer<typeof body> {
  if (!bytes) return null;
  return isUtf8(bytes) ? bytes.toString("utf8") : { base64: bytes.toString("base64") };
}

function decodeBody(text: z.infer<typeof body>): Buffer | undefined {
  if (text === null) return undefined;
  return typeof text === "string" ? Buffer.from(text) : Buffer.from(text.base64, "base64");
}
