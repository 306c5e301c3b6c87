import { clean } from "../../base/wording.ts";
import type { Caller, GuestOutput } from "../host-calls.ts";
import type { StackMapper } from "../positions/stack-mapper.ts";
import type { SandboxAttempt } from "./attempt.ts";
import { handlerError } from "./failure.ts";
import { cleanObject, type GuestError, type GuestLog, type GuestMetric } from "./run-output.ts";

/** Characters that one attempt may log, and metrics that it may send: twice the guest's own limits. */
const maxLogged = 128 * 1024;
const maxMetrics = 2000;

/** Lapses after a handler's return that are told of once a version. */
export type Lapse = "stray" | "call";

/** Whose words they are. */
interface Speaker {
  readonly function: string;
  readonly mapper: StackMapper;
  /** What it was told of once, and is not told of again. */
  readonly told: Set<Lapse>;
  /** Its code is gone: nobody knows any more which Secrets its words may hold. */
  isGone(): boolean;
}

/** Passes on what a function's guests write, in the author's places and fit for a person's terminal. */
export class GuestWords {
  private readonly speaker: Speaker;
  private readonly output: GuestOutput;
  /** A line that waited for its stack could not be written. */
  private readonly unwritten: (no: number, fault: unknown) => void;

  constructor(speaker: Speaker, output: GuestOutput, unwritten: (no: number, fault: unknown) => void) {
    this.speaker = speaker;
    this.output = output;
    this.unwritten = unwritten;
  }

  /**
   * Returns whether a guest can have written it: one that is itself stops far below. A line with a stack waits for the stack's
   * places, and the attempt's later lines and its end wait for that line.
   */
  log(attempt: SandboxAttempt, { no, level, message, fields }: GuestLog): boolean {
    attempt.logged += message.length + fields.length;
    if (attempt.logged > maxLogged) return false;
    if (!this.admits(attempt.caller, "log", message.length + fields.length)) return true;
    const { mapper } = this.speaker;
    const write = (text: string, json: string) =>
      this.output.log(attempt.caller, level, clean(text), cleanObject(json));
    const [text, json] = [mapper.map(message), mapper.mapJson(fields)];
    if (attempt.written === undefined && typeof text === "string" && typeof json === "string") write(text, json);
    else {
      attempt.written = Promise.all([text, json, attempt.written]).then(([mapped, mappedJson]) =>
        write(mapped, mappedJson),
      );
      attempt.written.catch((fault: unknown) => this.unwritten(no, fault));
    }
    return true;
  }

  /** As `log` gives it. */
  count(attempt: SandboxAttempt, { type, name, value, labels }: GuestMetric): boolean {
    if (++attempt.metrics > maxMetrics) return false;
    if (!this.admits(attempt.caller, "metric", name.length + labels.length)) return true;
    this.output.metric(attempt.caller, type, clean(name), value, textsOf(labels));
    return true;
  }

  private admits(caller: Caller, what: "log" | "metric", length: number): boolean {
    return this.output.admits?.(caller, what, length) ?? true;
  }

  /** An error that no event is left for. */
  stray(said: GuestError): void {
    const message = "an error that no handler is left for: its own had returned";
    this.once("stray", nobody(this.speaker.function), message, async () => ({
      error: await handlerError(said, this.speaker.mapper),
    }));
  }

  /** A call that its handler did not wait for. */
  unheard(caller: Caller, fields: Record<string, unknown>): void {
    this.once("call", caller, "a call that its handler did not wait for came to nothing", async () => fields);
  }

  /** A warning for the first of its kind: a busy function would repeat it for ever. Its fields are made where it is told. */
  private once(kind: Lapse, caller: Caller, message: string, fields: () => Promise<Record<string, unknown>>): void {
    const { told } = this.speaker;
    if (told.has(kind)) return;
    told.add(kind);
    fields()
      .then((made) => {
        if (this.speaker.isGone()) return;
        this.output.log(caller, "warn", message, { ...made, further: "not logged until the code changes" });
      })
      // Of no attempt that is left: a fault in it is nobody's.
      .catch(() => undefined);
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
