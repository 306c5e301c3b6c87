// Generates a fuzzing executor's frames: valid ones, and now and then one with a single fault.
import { randomBytes } from "node:crypto";
import { encodeFrame, frameType } from "../../../runtime/sandbox/wire.ts";
import type { Dice } from "./random.ts";

/** Functions that the executor was sent, by their numbers, with the events of each. */
export type Known = ReadonlyMap<number, readonly number[]>;

const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

/** Texts that parsers are known to fail on. */
const texts = (dice: Dice): string =>
  dice.pick([
    "",
    "m",
    `{"a":${dice.below(9)}}`,
    "x".repeat(dice.below(8000)),
    `"${'\\"'.repeat(dice.below(4000))}`,
    `    at f (app:///a/handler.js:${dice.below(50)}:${dice.below(50)})\n`.repeat(dice.below(60)),
    "app:///".repeat(dice.below(900)),
    "\u0000\u001b\u2028\ud800".repeat(dice.below(500)),
    deep(dice.below(140)),
    `{"__proto__":{"a":1},"constructor":1}`,
    " ".repeat(dice.below(9000)),
    "…".repeat(dice.below(2000)),
  ]);

/** Generates frames of an executor whose calls are numbered from `from`. `wrong`: the frame has a fault. */
export class FrameMaker {
  private readonly dice: Dice;
  private readonly from: number;
  private readonly known: Known;
  private lastCall = 0;

  constructor(dice: Dice, from: number, known: Known) {
    this.dice = dice;
    this.from = from;
    this.known = known;
  }

  frame(wrong: boolean): Buffer {
    const { dice } = this;
    if (wrong && dice.once(4)) return this.brokenBytes();
    const type = dice.pick([
      frameType.beat,
      frameType.drained,
      frameType.drained,
      frameType.drained,
      frameType.drained,
      frameType.left,
      ...(dice.once(4) ? [frameType.asking] : []),
      ...(dice.once(10) ? [frameType.ended] : []),
      ...(wrong
        ? [frameType.loaded, frameType.returned, frameType.doomed, frameType.ready, frameType.hello, dice.below(256)]
        : []),
    ]);
    const functionId = wrong && dice.once(4) ? this.number([], true) : this.functionId;
    const events = this.known.get(functionId) ?? [];
    const realm = 1 + dice.below(2);
    const header = this.header(type, functionId, realm, events, wrong && dice.once(2));
    if (type === frameType.asking) return this.question(functionId, realm, events, wrong);
    if (type !== frameType.drained) return Buffer.concat(encodeFrame(type, header));
    // An executor that leaves an isolate has entered it before, except in a faulty frame.
    const entering = { functionId, realm, events: this.numbers(events, 3, false) };
    const entry = wrong && dice.once(4) ? [] : encodeFrame(frameType.entering, entering);
    // It reports only events that have started, except in a faulty frame.
    const outbox = Buffer.from(this.outbox(wrong ? events : entering.events, wrong && dice.once(2)));
    return Buffer.concat([...entry, ...encodeFrame(type, header, [outbox])]);
  }

  /** A call that blocks its code until the answer: of an event that has started, except in a faulty frame. */
  private question(functionId: number, realm: number, events: readonly number[], wrong: boolean): Buffer {
    const { dice } = this;
    const no = this.number(events, wrong);
    const operation = wrong && dice.once(2) ? dice.pick(["kube.delete", "cache.", texts(dice)]) : "cache.list";
    const header = { functionId, realm, call: dice.below(1000), no, operation, ...(wrong && dice.once(4) && { x: 1 }) };
    const args = wrong && dice.once(3) ? deep(dice.below(20_000)) : JSON.stringify({ from: this.from });
    const entry = wrong && dice.once(4) ? [] : encodeFrame(frameType.entering, { functionId, realm, events: [no] });
    return Buffer.concat([...entry, ...encodeFrame(frameType.asking, header, [Buffer.from(args)])]);
  }

  private get functionId(): number {
    return this.dice.pick([...this.known.keys(), ...(this.known.size === 0 ? [1] : [])]);
  }

  private number(of: readonly number[], wrong: boolean): number {
    if (!wrong && of.length > 0) return this.dice.pick(of);
    return this.dice.pick([0, -1, 1.5, 7, 2 ** 31, 2 ** 53, Number.MAX_VALUE, this.dice.below(1000)]);
  }

  private numbers(of: readonly number[], most: number, wrong: boolean): number[] {
    if (of.length === 0 && !wrong) return [];
    return Array.from({ length: this.dice.below(wrong ? most * 100 : most) }, () => this.number(of, wrong));
  }

  private header(type: number, functionId: number, realm: number, events: readonly number[], wrong: boolean): unknown {
    const { dice } = this;
    const stack = texts(dice).slice(0, 9000);
    const forms: Record<number, object> = {
      [frameType.beat]: {},
      [frameType.ready]: {},
      [frameType.entering]: { functionId, realm, events: this.numbers(events, 3, wrong) },
      [frameType.drained]: { functionId, realm },
      [frameType.left]: { functionId, realm },
      [frameType.loaded]: { functionId },
      [frameType.returned]: { functionId, events: this.numbers(events, 3, wrong) },
      [frameType.doomed]: { functionId, reason: "poisoned" },
      [frameType.ended]: {
        functionId,
        realm,
        reason: dice.pick(["cpu", "deadline", "memory", "output", "killed"]),
        charged: this.numbers(events, 2, wrong),
        interrupted: this.numbers(events, 2, wrong),
        stack,
        running: dice.once(2),
      },
    };
    const header: object = forms[type] ?? { functionId };
    if (!wrong || dice.once(2)) return header;
    return dice.pick<unknown>([
      { ...header, x: texts(dice) },
      { ...header, x: JSON.parse(deep(dice.below(1000) + 1)) },
      { ...header, functionId: texts(dice) },
      { ...header, realm: [] },
      [],
      null,
      texts(dice),
      Array.from({ length: 10_000 }, (_, at) => at),
    ]);
  }

  private outbox(events: readonly number[], wrong: boolean): string {
    const { dice } = this;
    if (events.length === 0 && !wrong) return "[[],[],[],[],-1,[],0]\n";
    /** The limit of one attempt's log. */
    const words = () => texts(dice).slice(0, wrong || dice.once(50) ? 4096 : 100);
    const no = () => this.number(events, wrong && dice.once(3));
    const length = (text: string) => (wrong && dice.once(8) ? this.number([], true) : text.length);
    const list = <T>(make: () => [T, string], most: number): [T[], string] => {
      const made = Array.from({ length: dice.below(wrong ? most * 20 : most) }, make);
      return [made.map(([head]) => head), made.map(([, text]) => text).join("")];
    };
    const error = () => {
      const parts = ["Error", texts(dice).slice(0, 1900), texts(dice).slice(0, 3900)];
      return { heads: parts.map(length), text: parts.join("") };
    };
    const [done, doneTexts] = list<unknown>(() => {
      if (dice.once(2)) return [no(), ""];
      const { heads, text } = error();
      return [[no(), dice.pick(["failed", "permanent", "unreadable", "output", "deadline"]), ...heads, -1], text];
    }, 2);
    const [calls, callTexts] = list<unknown>(() => {
      const args = `{"from":${this.from},"x":${JSON.stringify(texts(dice).toWellFormed())}}`;
      return [
        [++this.lastCall, no(), dice.pick(["kube.get", "fetch", "__proto__", "constructor"]), length(args)],
        args,
      ];
    }, 4);
    const [logs, logTexts] = list<unknown>(() => {
      const [message, fields] = [words(), words()];
      return [[no(), dice.pick(["info", "warn"]), length(message), length(fields)], message + fields];
    }, 3);
    const [metrics, metricTexts] = list<unknown>(() => {
      const [name, labels] = [words().slice(0, 100), words()];
      return [[no(), dice.pick(["increment", "observe"]), length(name), dice.below(9), length(labels)], name + labels];
    }, 3);
    const [strays, strayTexts] = list<unknown>(() => {
      const { heads, text } = error();
      return [heads, text];
    }, 2);
    const wake = wrong && dice.once(5) ? [] : -1;
    const left = wrong && dice.once(3) ? this.number([0, 1, 2], dice.once(2)) : 0;
    const head = JSON.stringify([done, calls, logs, metrics, wake, strays, left]);
    return `${head}\n${doneTexts}${callTexts}${logTexts}${metricTexts}${strayTexts}`;
  }

  /** Bytes that are not a frame, or not an allowed one. */
  private brokenBytes(): Buffer {
    const { dice } = this;
    const good = Buffer.from(this.frame(false));
    const flipped = Buffer.from(good);
    flipped[dice.below(flipped.length)] = dice.below(256);
    const head = Buffer.alloc(9);
    head.writeUInt32LE(dice.pick([0, 4, 2 ** 20, 2 ** 23, 2 ** 32 - 1]), 0);
    head.writeUInt8(dice.below(256), 4);
    head.writeUInt32LE(dice.pick([0, 100, 2 ** 20, 2 ** 32 - 1]), 5);
    return dice.pick([
      flipped,
      good.subarray(0, dice.below(good.length)),
      randomBytes(dice.below(5000)),
      head,
      Buffer.concat(encodeFrame(frameType.drained, {}, [Buffer.from(deep(dice.below(2_000_000)))])),
      Buffer.concat(encodeFrame(frameType.entering, { x: "x".repeat(dice.below(4_000_000)) })),
    ]);
  }
}
