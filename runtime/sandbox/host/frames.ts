import { z } from "zod";
import type {
  Asking,
  Doomed,
  Drained,
  EndedEvents,
  Entering,
  Events,
  Hello,
  Left,
  Load,
  Loaded,
  Recall,
  Replies,
  Returned,
  Unload,
} from "../messages.ts";
import { type Frame, frameType } from "../wire.ts";
import { type RunOutput, readOutbox } from "./run-output.ts";

/** A frame sent by the parent. */
export type DownFrame = { readonly segments?: readonly Buffer[] } & (
  | { readonly type: typeof frameType.hello; readonly header: Hello }
  | { readonly type: typeof frameType.load; readonly header: Load }
  | { readonly type: typeof frameType.events; readonly header: Events }
  | { readonly type: typeof frameType.replies; readonly header: Replies }
  | { readonly type: typeof frameType.unload; readonly header: Unload }
  | { readonly type: typeof frameType.recall; readonly header: Recall }
);

/** A validated frame from an executor. */
export type UpFrame =
  | { readonly type: typeof frameType.ready }
  | { readonly type: typeof frameType.beat }
  | ({ readonly type: typeof frameType.entering } & Entering)
  | ({ readonly type: typeof frameType.drained; readonly outbox: RunOutput } & Drained)
  | ({ readonly type: typeof frameType.asking; readonly args: string } & Asking)
  | ({ readonly type: typeof frameType.loaded } & Loaded)
  | ({ readonly type: typeof frameType.ended } & EndedEvents)
  | ({ readonly type: typeof frameType.left } & Left)
  | ({ readonly type: typeof frameType.returned } & Returned)
  | ({ readonly type: typeof frameType.doomed } & Doomed)
  | { readonly type: typeof frameType.refused; readonly reason: string };

/**
 * Maximum characters of a header, by frame type. A frame that ends events has up to ten thousand numbers, one that begins an
 * entry has those of a batch, one that ends an entry has four. The longest header, nested as deeply as possible, takes 10 ms to
 * parse.
 */
const maxHeader = 128 * 1024;
const maxEntering = 8 * 1024;
const maxDrained = 150;
const maxAsking = 300;
/** Maximum bytes of a blocking call's arguments: a reference or a selector. */
const maxAsked = 16 * 1024;
/** Maximum number of events of one entry: those of a batch, or all that an isolate holds when its timers run (256). */
const maxEntered = 300;

const index = z.int().min(0);
const numbers = z.array(index).max(10_000);
const stack = z.string().max(10_000);
const version = z.string().max(100).optional();
const endReason = z.enum(["cpu", "deadline", "memory", "output", "killed"]);

const schemas = {
  [frameType.loaded]: z.strictObject({
    functionId: index,
    failure: z
      .strictObject({
        reason: z.union([endReason, z.enum(["thrown", "unheard", "handler", "missing", "mode"])]),
        name: z.string().max(300),
        message: z.string().max(4000),
        stack,
      })
      .optional(),
  }),
  [frameType.ended]: z.strictObject({
    functionId: index,
    realm: index,
    reason: endReason,
    charged: numbers,
    interrupted: numbers,
    stack,
    running: z.boolean(),
  }),
  [frameType.left]: z.strictObject({ functionId: index, realm: index }),
  [frameType.returned]: z.strictObject({ functionId: index, events: numbers }),
  [frameType.doomed]: z.strictObject({ functionId: index, reason: z.enum(["poisoned", "catastrophic"]) }),
  [frameType.refused]: z.strictObject({ reason: z.string().max(1000) }),
  [frameType.ready]: z.strictObject({ node: version, isolatedVm: version }),
} as const;

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * Validates a frame of an executor. Returns `undefined` for one that an honest executor would not send, even if it has only one
 * field too many.
 */
export function readUpFrame({ type, header, body }: Frame): UpFrame | undefined {
  // The frames of every entry, and the heartbeat, are checked by hand, as strictly: a schema costs ten times as much.
  if (type === frameType.drained) return readDrained(header, body);
  if (type === frameType.asking) return readAsking(header, body);
  if (body.length > 0) return undefined;
  if (type === frameType.beat) return header === "{}" ? { type } : undefined;
  if (type === frameType.entering) return readEntering(header);
  const schema = schemas[type as keyof typeof schemas];
  const checked = schema?.safeParse(objectOf(header, maxHeader));
  return checked?.success ? ({ ...checked.data, type } as UpFrame) : undefined;
}

function readEntering(header: string): UpFrame | undefined {
  const parsed = objectOf(header, maxEntering, 3);
  if (!parsed) return undefined;
  const { functionId, realm, events } = parsed;
  if (!isIndex(functionId) || !isIndex(realm) || !Array.isArray(events) || events.length > maxEntered) return undefined;
  return events.every(isIndex) ? { type: frameType.entering, functionId, realm, events } : undefined;
}

function readDrained(header: string, body: Buffer): UpFrame | undefined {
  const parsed = objectOf(header, maxDrained);
  if (!parsed || !isIndex(parsed.functionId) || !isIndex(parsed.realm)) return undefined;
  const { functionId, realm, used } = parsed;
  if (Object.keys(parsed).length !== (used === undefined ? 2 : 3)) return undefined;
  const outbox = readOutbox(body);
  if (!outbox || used === undefined) return outbox && { type: frameType.drained, functionId, realm, outbox };
  if (!Array.isArray(used) || used.length !== 2 || !isIndex(used[0]) || !isIndex(used[1])) return undefined;
  return { type: frameType.drained, functionId, realm, used: [used[0], used[1]], outbox };
}

function readAsking(header: string, body: Buffer): UpFrame | undefined {
  const parsed = objectOf(header, maxAsking, 5);
  if (!parsed || body.length > maxAsked) return undefined;
  const { functionId, realm, call, no, operation } = parsed;
  if (!isIndex(functionId) || !isIndex(realm) || !isIndex(call) || !isIndex(no)) return undefined;
  if (typeof operation !== "string" || !/^cache\.[a-z]{1,20}$/.test(operation)) return undefined;
  return { type: frameType.asking, functionId, realm, call, no, operation, args: body.toString("utf8") };
}

/**
 * Parses a header that must be an object, with `fields` fields if given. Returns `undefined` for anything else, or if it is too
 * long.
 */
function objectOf(header: string, maxLength: number, fields?: number): Record<string, unknown> | undefined {
  if (header.length > maxLength) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(header);
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null) return undefined;
  if (fields !== undefined && Object.keys(parsed).length !== fields) return undefined;
  return parsed as Record<string, unknown>;
}
