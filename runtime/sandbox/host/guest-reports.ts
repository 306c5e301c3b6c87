import { clean } from "../../base/wording.ts";
import type { Caller, GuestOutput } from "../host-calls.ts";
import type { StackMapper } from "../positions/stack-mapper.ts";
import type { SandboxAttempt } from "./attempt.ts";
import { handlerError } from "./failure.ts";
import { cleanObject, type GuestError, type GuestLog, type GuestMetric } from "./run-output.ts";

/** Maximum characters that one attempt may log, and maximum number of its metric samples: twice the guest's own limits. */
const maxLogged = 128 * 1024;
const maxMetrics = 2000;

/** Mistakes after a handler's return that are logged once per version. */
export type LateFault = "stray" | "call";

/** The function whose output is passed on. */
interface Speaker {
  readonly function: string;
  readonly mapper: StackMapper;
  /** Mistakes already logged, which are not logged again. */
  readonly reported: Set<LateFault>;
  /** Whether its code is gone. Then it is no longer known which Secrets its output may contain. */
  isGone(): boolean;
}

/** Passes on a function's log lines and metrics, with stacks mapped to the author's files and without control characters. */
export class GuestReports {
  private readonly speaker: Speaker;
  private readonly output: GuestOutput;
  /** Called when a log line that waited for its stack could not be written. */
  private readonly unwritten: (no: number, fault: unknown) => void;

  constructor(speaker: Speaker, output: GuestOutput, unwritten: (no: number, fault: unknown) => void) {
    this.speaker = speaker;
    this.output = output;
    this.unwritten = unwritten;
  }

  /**
   * Writes a log line. Returns false if an honest guest cannot have sent it, because its own limit is far lower. A line with a
   * stack waits for the mapping; the attempt's later lines and its end wait for that line.
   */
  log(attempt: SandboxAttempt, { no, level, message, fields }: GuestLog): boolean {
    attempt.logged += message.length + fields.length;
    if (attempt.logged > maxLogged) return false;
    if (this.output.admits?.(attempt.delivery, "log", message.length + fields.length) === false) return true;
    const { mapper } = this.speaker;
    const write = (text: string, json: string) =>
      this.output.log(attempt.delivery, level, clean(text), cleanObject(json));
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

  /** Writes a metric sample. Returns as `log` does. */
  count(attempt: SandboxAttempt, { type, name, value, labels }: GuestMetric): boolean {
    if (++attempt.metrics > maxMetrics) return false;
    if (this.output.admits?.(attempt.delivery, "metric", name.length + labels.length) === false) return true;
    this.output.metric(attempt.delivery, type, clean(name), value, textsOf(labels));
    return true;
  }

  /** An error that no event is left for. */
  stray(said: GuestError): void {
    const message = "an error that no handler is left for: its own had returned";
    this.once("stray", nobody(this.speaker.function), message, async () => ({
      error: await handlerError(said, this.speaker.mapper),
    }));
  }

  /** Logs a failed call that its handler did not await. */
  unheard(caller: Caller, fields: Record<string, unknown>): void {
    this.once("call", caller, "a call that its handler did not wait for had no effect", async () => fields);
  }

  /**
   * Logs a warning for the first mistake of its kind, because a busy function would repeat it for ever. Its fields are computed
   * only if it is logged.
   */
  private once(kind: LateFault, caller: Caller, message: string, fields: () => Promise<Record<string, unknown>>): void {
    const { reported } = this.speaker;
    if (reported.has(kind)) return;
    reported.add(kind);
    fields()
      .then((made) => {
        if (this.speaker.isGone()) return;
        this.output.log(caller, "warn", message, { ...made, further: "not logged until the code changes" });
      })
      // No attempt is left that a fault could be reported to.
      .catch(() => undefined);
  }
}

/** Converts a metric's labels to strings. Objects are replaced, since converting one could throw. */
const textsOf = (labels: string): Record<string, string> =>
  Object.fromEntries(Object.entries(cleanObject(labels)).map(([key, label]) => [key, textOf(label)]));

const textOf = (label: unknown): string => (typeof label === "object" && label !== null ? "[object]" : String(label));

/** The caller for a line that belongs to a function and not to one of its events. */
const nobody = (name: string): Caller => ({
  function: name,
  trigger: "",
  id: "",
  object: { apiVersion: "", kind: "", namespace: "", name: "", uid: "" },
  attempt: 0,
});
