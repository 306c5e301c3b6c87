// An executor that sends random frames on descriptor 3; its arguments are a seed and its number. It accepts functions, runs
// nothing, and sends frames until it is killed or its time is over.
import { Socket } from "node:net";
import { encodeFrame, FrameReader, frameType, maxFrameDown } from "../../../runtime/sandbox/wire.ts";
import { FrameMaker } from "./frames.ts";
import { Dice } from "./random.ts";

const [seed = 0, number = 0] = process.argv.slice(2).map(Number);
const dice = new Dice(seed + 7919 * number);
const known = new Map<number, number[]>();
const maker = new FrameMaker(dice, number, known);
const stream = new Socket({ fd: 3 });
const say = (type: number, header: unknown, body = "") =>
  stream.write(Buffer.concat(encodeFrame(type, header, body === "" ? [] : [Buffer.from(body)])));

/** One in so many frames is invalid; the first few frames are valid. */
const wrongOnce = dice.pick([20, 200, 2000, Number.MAX_SAFE_INTEGER]);
/** Time until it ends itself, in milliseconds. */
const lifeMs = 500 + dice.below(4000);
const conduct = dice.pick(["talks", "talks", "talks", "talks", "floods", "trickles", "reads nothing", "says nothing"]);
const nothing = "[[],[],[],[],-1,[],0]\n";

const reader = new FrameReader(maxFrameDown);
stream.on("error", () => process.exit(0));
stream.on("close", () => process.exit(0));
stream.on("data", (chunk: Buffer) => {
  for (const { type, header } of reader.push(chunk)) {
    const told = JSON.parse(header) as { functionId: number; items?: [number][] };
    if (type === frameType.load) {
      known.set(told.functionId, []);
      say(frameType.entering, { functionId: told.functionId, realm: 1, events: [] });
      say(frameType.drained, { functionId: told.functionId, realm: 1 }, nothing);
      say(frameType.loaded, { functionId: told.functionId });
    } else if (type === frameType.events) known.get(told.functionId)?.push(...(told.items ?? []).map(([no]) => no));
    else if (type === frameType.unload) known.delete(told.functionId);
  }
});

say(frameType.ready, {});
const beat = setInterval(() => say(frameType.beat, {}), 100);

function talk(frames: number): void {
  for (let count = 0; count < frames; count++) stream.write(maker.frame(dice.once(wrongOnce)));
}

function act(): void {
  if (conduct === "says nothing") clearInterval(beat);
  else if (conduct === "trickles") {
    clearInterval(beat);
    const bytes = Buffer.concat([maker.frame(false), maker.frame(false), maker.frame(false)]);
    let at = 0;
    setInterval(() => stream.write(bytes.subarray(at, ++at)), 5);
  } else if (conduct === "floods") {
    const bytes = Buffer.concat(Array.from({ length: 500 }, () => maker.frame(false)));
    const more = () => {
      while (stream.write(bytes));
      stream.once("drain", more);
    };
    more();
  } else {
    if (conduct === "reads nothing") stream.pause();
    setInterval(() => talk(1 + dice.below(20)), 1 + dice.below(10));
  }
}

// Begins once it knows a function.
const look = setInterval(() => {
  if (![...known.values()].some((events) => events.length > 0)) return;
  clearInterval(look);
  setTimeout(() => process.kill(process.pid, "SIGKILL"), lifeMs);
  act();
}, 5);
