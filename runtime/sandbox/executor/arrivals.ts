import { isAscii } from "node:buffer";
import type { EventItem, Events } from "../messages.ts";
import type { QueuedEvent } from "./batch.ts";

/**
 * Maximum bytes of events that are decoded into one string, unless a single event is larger. Events are processed in order of
 * arrival, so a waiting event keeps at most this many bytes of earlier events alive. V8 maps new memory for each string above 128
 * KiB.
 */
const maxTogether = 112 * 1024;

const lengthOf = ([, , head, object, old]: EventItem): number => head + object + Math.max(0, old);

/** Decodes the events of a frame. If the bytes are ASCII, events decoded together share one string and are ranges of it. */
export function readEvents(items: Events["items"], body: Buffer): QueuedEvent[] {
  const events: QueuedEvent[] = [];
  let start = 0;
  let end = 0;
  let first = 0;
  for (let next = 0; next <= items.length; next++) {
    const item = items[next];
    const length = item ? lengthOf(item) : 0;
    if (next > first && (!item || end + length - start > maxTogether)) {
      if (isAscii(body.subarray(start, end)))
        readTogether(items, first, next, body.toString("latin1", start, end), events);
      else readEach(items, first, next, body.subarray(start, end), events);
      start = end;
      first = next;
    }
    end += length;
  }
  return events;
}

function readTogether(items: Events["items"], first: number, next: number, text: string, events: QueuedEvent[]): void {
  let to = 0;
  for (let index = first; index < next; index++) {
    const item = items[index] as EventItem;
    const [no, timeoutMs, head, object, old, at, end] = item;
    const from = to;
    to += lengthOf(item);
    events.push({ no, timeoutMs, head: `[0,${no},${head},${object},${old},${at},${end}]`, text, from, to });
  }
}

/** Decodes each event by itself, because its lengths in characters differ from those in bytes. */
function readEach(items: Events["items"], first: number, next: number, body: Buffer, events: QueuedEvent[]): void {
  let read = 0;
  const take = (length: number): string => {
    read += length;
    return body.toString("utf8", read - length, read);
  };
  for (let index = first; index < next; index++) {
    const [no, timeoutMs, headLength, objectLength, old, at, end] = items[index] as EventItem;
    const head = take(headLength);
    const object = take(objectLength);
    const oldObject = old < 0 ? "" : take(old);
    const isKnown = object.length === objectLength;
    const lengths = `${head.length},${object.length},${old < 0 ? -1 : oldObject.length}`;
    const text = head + object + oldObject;
    events.push({
      no,
      timeoutMs,
      head: `[0,${no},${lengths},${isKnown ? at : -1},${end}]`,
      text,
      from: 0,
      to: text.length,
    });
  }
}
