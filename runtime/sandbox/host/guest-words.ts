import { clean } from "../../wording.ts";
import type { Caller, GuestOutput } from "../host-calls.ts";
import type { Attempt } from "./attempt.ts";
import { handlerError } from "./failure.ts";
import { cleanObject, type GuestError, type GuestLog, type GuestMetric } from "./outbox.ts";
import type { StackMapper } from "./stack.ts";

/** Characters that one attempt may log, and metrics that it may send: twice the guest's own limits. */
const maxLogged = 128 * 1024;
const maxMetrics = 2000;

/** Lapses after a handler's return that are told of once a version. */
export type Lapse = "stray" | "call";

/** Whose words they are. */
export interface Speaker {
  readonly function: string;
  readonly mapper: StackMapper;
  /** What it was told of once, and is not told of again. */
  readonly told: Set<Lapse>;
}

/** Passes on what a function's guests write, in the author's places and fit for a person's terminal. */
export class GuestWords {
  private readonly speaker: Speaker;
  private readonly output: GuestOutput;

  constructor(speaker: Speaker, output: GuestOutput) {
    this.speaker = speaker;
    this.output = output;
  }

  /** Gives whether a guest can have written it: one that is itself stops far below. */
  log(attempt: Attempt, { level, message, fields }: GuestLog): boolean {
    attempt.logged += message.length + fields.length;
    if (attempt.logged > maxLogged) return false;
    const { mapper } = this.speaker;
    this.output.log(attempt.caller, level, clean(mapper.map(message)), cleanObject(mapper.mapJson(fields)));
    return true;
  }

  /** As `log` gives it. */
  count(attempt: Attempt, { type, name, value, labels }: GuestMetric): boolean {
    if (++attempt.metrics > maxMetrics) return false;
    this.output.metric(attempt.caller, type, clean(name), value, textsOf(labels));
    return true;
  }

  /** An error that no event is left for. */
  stray(said: GuestError): void {
    const message = "an error that no handler is left for: its own had returned";
    this.once("stray", nobody(this.speaker.function), message, () => ({
      error: handlerError(said, this.speaker.mapper),
    }));
  }

  /** A call that its handler did not wait for. */
  unheard(caller: Caller, fields: Record<string, unknown>): void {
    this.once("call", caller, "a call that its handler did not wait for came to nothing", () => fields);
  }

  /** A warning for the first of its kind: a busy function would repeat it for ever. Its fields are made where it is told. */
  private once(kind: Lapse, caller: Caller, message: string, fields: () => Record<string, unknown>): void {
    const { told } = this.speaker;
    if (told.has(kind)) return;
    told.add(kind);
    this.output.log(caller, "warn", message, { ...fields(), further: "not logged until the code changes" });
  }
}

/** A metric's labels: text alone. What is asked for its text could throw, and is not. */
const textsOf = (labels: string): Record<string, string> =>
  Object.fromEntries(Object.entries(cleanObject(labels)).map(([key, label]) => [key, textOf(label)]));

const textOf = (label: unknown): string => (typeof label === "object" && label !== null ? "[object]" : String(label));

/** In whose name a line is that belongs to a function, and to no event of it. */
const nobody = (name: string): Caller => ({
  function: name,
  trigger: "",
  id: "",
  object: { apiVersion: "", kind: "", namespace: "", name: "", uid: "" },
  attempt: 0,
});
