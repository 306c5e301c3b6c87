import { z } from "zod";
import { resourceVersion } from "../base/resource-version.ts";
import { eventTypes, isChange } from "../manifest/function.ts";
import {
  type Cause,
  causeTypes,
  type DeadLetter,
  type DeadLetterSummary,
  type NewDeadLetter,
  type Spilled,
  type SpilledEvent,
  type SpilledKey,
  type SpillHeader,
} from "./batch.ts";

/** A row as node:sqlite returns it. */
export type Row = Record<string, unknown>;

const version = z.string().transform(resourceVersion);

const event = {
  view: z.number(),
  function: z.string(),
  trigger: z.string(),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  resourceVersion: version,
  type: z.enum(eventTypes),
  id: z.string(),
  deletedBy: version,
  flags: z.record(z.string(), z.unknown()),
  form: z.string().optional(),
  receivedAt: z.number(),
};

const cause = z.object({
  type: z.enum(causeTypes),
  trigger: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  uid: z.string().optional(),
  replaced: z.string().optional(),
  told: z.boolean().optional(),
});

const spillHeader = z
  .object({
    ...event,
    /** Absent in rows of older runtimes. */
    kind: z.enum(["event", "tick", "key"]).optional(),
    sequence: z.number(),
    replayed: z.boolean(),
    redelivered: z.boolean(),
    notBefore: z.number().optional(),
    pending: z.object({ causes: z.array(cause), begun: z.number(), forgiven: z.number() }).optional(),
  })
  .transform(({ kind, pending, ...row }): Omit<SpilledEvent, Body> | Omit<SpilledKey, Body> => {
    if (!pending) return { ...row, kind: kind === "tick" || !isChange(row.type) ? "tick" : "event" };
    const { uid: _, resourceVersion: __, deletedBy: ___, type: ____, flags: _____, replayed: ______, ...key } = row;
    const causes: Cause[] = [];
    for (const { told, ...known } of pending.causes)
      causes.push(told === undefined ? known : { ...known, delivered: told });
    return { ...key, kind: "key", pending: { ...pending, causes } };
  });

type Body = "body" | "oldBody";

/** Fields that an older runtime requires of every row. It reads a key's row as an event. */
const keyAsEvent = { uid: "", resourceVersion: "0", deletedBy: "0", type: "Modified", flags: {}, replayed: true };

const letterHeader = z.object({
  ...event,
  apiVersion: z.string(),
  kind: z.string(),
  attempts: z.number(),
  error: z.object({ name: z.string(), message: z.string(), stack: z.string(), code: z.string().optional() }),
  failedAt: z.number(),
});

export const startedRows = z.array(
  z
    .tuple([z.number(), z.string(), z.string(), version, event.type, z.number()])
    .transform(([view, key, id, resourceVersion, type, attempt]) => ({
      view,
      key,
      id,
      resourceVersion,
      type,
      attempt,
    })),
);

/** Returns everything but the bodies and a letter's id as JSON; those have columns of their own. */
export function headerOf(event: Spilled | NewDeadLetter | DeadLetter): string {
  const { body: _, oldBody: __, letter: ___, bodyDropped: ____, ...header } = event as DeadLetter;
  if (!("pending" in header)) return JSON.stringify(header);
  const { pending, ...key } = header as unknown as SpilledKey;
  // A cause's `delivered` is stored as `told`.
  const causes: object[] = [];
  for (const { delivered: told, ...cause } of pending.causes) causes.push({ ...cause, told });
  return JSON.stringify({ ...keyAsEvent, ...key, pending: { ...pending, causes } });
}

export const readSpillHeader = (row: Row): SpillHeader => ({
  ...spillHeader.parse(JSON.parse(String(row.header))),
  size: Number(row.size),
});

export const readSpilled = (row: Row): Spilled => ({
  ...spillHeader.parse(JSON.parse(String(row.header))),
  body: bytes(row.body) ?? Buffer.alloc(0),
  oldBody: bytes(row.old_body),
});

/** `row.size`: the size of the body; 0 if the body was dropped. */
export const readLetterSummary = (row: Row): DeadLetterSummary => {
  const { error, ...header } = letterHeader.parse(JSON.parse(String(row.header)));
  const { code, ...known } = error;
  const bodyDropped = row.size === 0;
  return { ...header, error: code === undefined ? known : { ...known, code }, letter: String(row.id), bodyDropped };
};

export const readLetter = (row: Row): DeadLetter => {
  const body = bytes(row.body) ?? Buffer.alloc(0);
  return { ...readLetterSummary({ ...row, size: body.length }), body, oldBody: bytes(row.old_body) };
};

/** Returns a Buffer over SQLite's own copy, without copying it. */
export function bytes(value: unknown): Buffer | undefined {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : undefined;
}

/** Reads the keys in a `known` row. `undefined` if no keys are recorded, or if they belong to another state. */
export function readKeys(column: unknown, resourceVersion: string): string[] | undefined {
  if (column === null || column === undefined) return undefined;
  const [of, ...keys] = keysColumn.parse(JSON.parse(String(column)));
  return of === resourceVersion ? keys : undefined;
}

const keysColumn = z.array(z.string());

/** Returns a form as its column stores it: the resourceVersion that it belongs to, then the form. `null` if there is no form. */
export const formText = (form: string | undefined, resourceVersion: string): string | null =>
  form === undefined ? null : `${resourceVersion} ${form}`;

/** Reads the form in a `known` row. `undefined` if no form is recorded, or if it belongs to another state. */
export function readForm(column: unknown, resourceVersion: string): string | undefined {
  const prefix = `${resourceVersion} `;
  return typeof column === "string" && column.startsWith(prefix) ? column.slice(prefix.length) : undefined;
}
