// Program of the thread that reads source maps. It holds the maps of its requests until it is asked to forget them.
import { parentPort } from "node:worker_threads";
import { SourcePositions } from "./source-positions.ts";
import type { ThreadReply, ThreadRequest } from "./thread-messages.ts";

const held = new Map<number, SourcePositions>();

function answer({ map, source, forget, kind, text }: ThreadRequest): ThreadReply {
  for (const number of forget) held.delete(number);
  let positions = held.get(map);
  try {
    positions ??= new SourcePositions(source ?? "");
    const { bytes } = positions;
    const place = kind === "place" ? positions.place(text) : kind === "entry" ? positions.entry : undefined;
    const shown = kind === "text" || kind === "json" ? positions[kind](text) : "";
    held.set(map, positions);
    return { unreadable: false, text: shown, place, bytes };
  } catch {
    held.delete(map);
    return { unreadable: true };
  }
}

parentPort?.on("message", (request: ThreadRequest) => parentPort?.postMessage(answer(request)));
