import type { Clock } from "../../base/clock.ts";
import { WatchfireError } from "../../base/errors.ts";
import type { Delivery, Runner } from "../../engine/delivery/delivery.ts";
import type { RecordAnswer, RecordQuestion } from "../../observe/control-api.ts";
import { fixtureFrom, namesOf } from "./fixture.ts";
import { withoutSecrets } from "./redaction.ts";

/** Maximum number of recordings at once, over all functions. */
const mostRecordings = 4;
/** Maximum bytes of one delivery. A larger one is counted and left out. */
const mostOfOne = 2 ** 20;
/** Minimum bytes counted for any delivery, in addition to its objects and causes. */
const leastOfOne = 2 ** 10;
/** Maximum bytes that wait for the recording client. */
const mostWaiting = 4 * 2 ** 20;
/** Milliseconds without a request after which a client is considered gone. */
const patienceMs = 30_000;

interface Recording {
  readonly of: string;
  /** How many more are wanted; `undefined` for no limit. */
  wanted: number | undefined;
  taken: RecordAnswer["taken"];
  bytes: number;
  left: number;
  askedAt: number;
  wake: () => void;
}

/** Records the deliveries to functions as fixtures, from the moment a client asks for it. Otherwise nothing is kept. */
export class Recorder {
  private readonly clock: Clock;
  private readonly redact: (functionName: string, data: unknown) => unknown;
  private readonly recordings = new Map<string, Recording>();
  private number = 0;

  /** `redact` removes the values of a function's environment. */
  constructor(clock: Clock, redact: (functionName: string, data: unknown) => unknown) {
    this.clock = clock;
    this.redact = redact;
  }

  /** Wraps a runner so that deliveries are recorded as their handlers begin. */
  listening(runner: Runner): Runner {
    return {
      recall: (functionName) => runner.recall(functionName),
      give: (delivery, listener) => {
        if (this.recordings.size === 0) {
          runner.give(delivery, listener);
          return;
        }
        const begins = () => {
          this.heard(delivery);
          listener.begins();
        };
        runner.give(delivery, { begins, ended: (outcome) => listener.ended(outcome) });
      },
    };
  }

  /** @throws WatchfireError WF_RUNTIME_NOT_RECORDED if the recording does not exist, or there are too many */
  async ask(of: string, question: RecordQuestion): Promise<RecordAnswer> {
    this.forget();
    const id = "recording" in question ? question.recording : this.begin(of, question.count);
    const recording = this.recordings.get(id);
    if (recording?.of !== of) throw refused("the runtime knows of no such recording", id);
    recording.askedAt = this.clock.monotonic();
    const waitMs = "recording" in question ? question.wait * 1000 : 0;
    if (recording.taken.length === 0 && recording.left === 0 && waitMs > 0) {
      await new Promise<void>((resolve) => {
        const late = this.clock.after(waitMs, resolve, { unref: true });
        recording.wake = () => {
          late.cancel();
          resolve();
        };
      });
    }
    const { taken, left } = recording;
    Object.assign(recording, { taken: [], bytes: 0, left: 0, askedAt: this.clock.monotonic(), wake: () => {} });
    const isDone = recording.wanted === 0;
    if (isDone) this.recordings.delete(id);
    return { taken, left, ...(!isDone && { recording: id }) };
  }

  private begin(of: string, wanted: number | undefined): string {
    if (this.recordings.size >= mostRecordings) throw refused(`${mostRecordings} recordings are running already`, of);
    const id = String(++this.number);
    const askedAt = this.clock.monotonic();
    this.recordings.set(id, { of, wanted, taken: [], bytes: 0, left: 0, askedAt, wake: () => {} });
    return id;
  }

  private heard(delivery: Delivery): void {
    this.forget();
    for (const recording of this.recordings.values()) {
      if (recording.of !== delivery.function || recording.wanted === 0) continue;
      const bytes = bytesOf(delivery);
      const taken = bytes > mostOfOne || recording.bytes + bytes > mostWaiting ? undefined : this.described(delivery);
      if (!taken) recording.left++;
      else {
        recording.taken.push(taken);
        recording.bytes += bytes;
        if (recording.wanted !== undefined) recording.wanted--;
      }
      recording.wake();
    }
  }

  /** Returns `undefined` if an object is nested too deeply to be copied. Its handler still receives it. */
  private described(delivery: Delivery): RecordAnswer["taken"][number] | undefined {
    try {
      const fixture = this.redact(delivery.function, withoutSecrets(fixtureFrom(delivery)));
      return { ...namesOf(delivery), fixture: fixture as Record<string, unknown> };
    } catch {
      return undefined;
    }
  }

  private forget(): void {
    const now = this.clock.monotonic();
    for (const [id, { askedAt }] of this.recordings) if (now - askedAt > patienceMs) this.recordings.delete(id);
  }
}

function bytesOf({ body, oldBody, causes = [], members = [], state }: Delivery): number {
  let own = leastOfOne + body.length + (oldBody?.length ?? 0) + JSON.stringify(causes).length;
  for (const [key, value] of state ?? []) own += key.length + value.length;
  return members.reduce((sum, each) => sum + (each.oldBody?.length ?? 0), own);
}

const refused = (what: string, actual: string): WatchfireError =>
  new WatchfireError("WF_RUNTIME_NOT_RECORDED", { what, actual });
