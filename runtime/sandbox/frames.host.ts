import { z } from "zod";
import type {
  Doomed,
  Drained,
  Ended,
  Entering,
  Events,
  Hello,
  Left,
  Load,
  Loaded,
  Replies,
  Unload,
} from "./messages.ts";
import { type Outbox, readOutbox } from "./outbox.host.ts";
import { type Frame, frameType } from "./wire.ts";

/** What the parent sends. */
export type DownFrame = { readonly segments?: readonly Buffer[] } & (
  | { readonly type: typeof frameType.hello; readonly header: Hello }
  | { readonly type: typeof frameType.load; readonly header: Load }
  | { readonly type: typeof frameType.events; readonly header: Events }
  | { readonly type: typeof frameType.replies; readonly header: Replies }
  | { readonly type: typeof frameType.unload; readonly header: Unload }
);

/** What an executor says, checked. */
export type UpFrame =
  | { readonly type: typeof frameType.ready }
  | { readonly type: typeof frameType.beat }
  | ({ readonly type: typeof frameType.entering } & Entering)
  | ({ readonly type: typeof frameType.drained; readonly outbox: Outbox } & Drained)
  | ({ readonly type: typeof frameType.loaded } & Loaded)
  | ({ readonly type: typeof frameType.ended } & Ended)
  | ({ readonly type: typeof frameType.left } & Left)
  | ({ readonly type: typeof frameType.doomed } & Doomed)
  | { readonly type: typeof frameType.refused; readonly reason: string };

/** Characters of a header: ten thousand numbers of events. Nested as deep as it goes, JSON of this length takes 10 ms. */
const maxHeader = 128 * 1024;

const index = z.int().min(0);
const numbers = z.array(index).max(10_000);
const stack = z.string().max(10_000);
const endReason = z.enum(["cpu", "deadline", "memory", "output", "killed"]);

const schemas = {
  [frameType.loaded]: z.strictObject({
    tenant: index,
    failure: z
      .strictObject({
        reason: z.union([endReason, z.enum(["thrown", "unheard", "handler", "missing"])]),
        name: z.string().max(300),
        message: z.string().max(4000),
        stack,
      })
      .optional(),
  }),
  [frameType.ended]: z.strictObject({
    tenant: index,
    realm: index,
    reason: endReason,
    charged: numbers,
    interrupted: numbers,
    stack,
    running: z.boolean(),
  }),
  [frameType.left]: z.strictObject({ tenant: index, realm: index }),
  [frameType.doomed]: z.strictObject({ tenant: index, reason: z.enum(["poisoned", "catastrophic"]) }),
  [frameType.refused]: z.strictObject({ reason: z.string().max(1000) }),
  [frameType.ready]: z.looseObject({}),
} as const;

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Reads a frame of an executor; undefined for one that an honest executor would not send. */
export function readUpFrame({ type, header, body }: Frame): UpFrame | undefined {
  if (type === frameType.beat) return { type };
  if (header.length > maxHeader) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(header);
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null) return undefined;
  // The two frames of every entry are checked by hand: a schema costs ten times as much.
  const { tenant, realm, events } = parsed as { tenant: unknown; realm: unknown; events: unknown };
  if (type === frameType.entering) {
    if (!isIndex(tenant) || !isIndex(realm) || !Array.isArray(events) || events.length > 10_000) return undefined;
    return events.every(isIndex) ? { type, tenant, realm, events } : undefined;
  }
  if (type === frameType.drained) {
    const outbox = readOutbox(body);
    return outbox && isIndex(tenant) && isIndex(realm) ? { type, tenant, realm, outbox } : undefined;
  }
  const schema = schemas[type as keyof typeof schemas];
  if (!schema) return undefined;
  const checked = schema.safeParse(parsed);
  return checked.success ? ({ ...checked.data, type } as UpFrame) : undefined;
}
